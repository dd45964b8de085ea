//! A virtual machine for BPF programs: the instructions of RFC 9669 up to what clang calls v3, without
//! atomics, which no law uses.

use std::ops::Range;

pub(crate) const CALL: u8 = 0x85;
pub(crate) const LOAD_64: u8 = 0x18;
/// In a call's source register: the callee is a function of the program, not a helper.
pub(crate) const LOCAL: usize = 1;

/// Linux's limits (MAX_BPF_STACK, MAX_CALL_FRAMES); a call has all of the stack, as no law comes near.
const STACK_BYTES: usize = 512;
const FRAMES: usize = 8;
/// More than the longest path of any law by far.
const MOST_STEPS: u32 = 1 << 20;

const FOREIGN: &str = "memory that is not its own; allowed: its stack, its arguments, its constants";
const UNKNOWN: &str = "unknown; allowed: RFC 9669 up to v3, without atomics";
const UNKNOWN_HELPER: &str = "unknown helper; allowed: bpf_sk_storage_get, bpf_tcp_send_ack";

/// One instruction as the object has it (RFC 9669 section 3).
#[derive(Clone, Copy)]
pub(crate) struct Instruction(pub(crate) [u8; 8]);

impl Instruction {
    pub(crate) fn opcode(self) -> u8 {
        self.0[0]
    }

    pub(crate) fn source(self) -> usize {
        usize::from(self.0[1] >> 4)
    }

    fn destination(self) -> usize {
        usize::from(self.0[1] & 15)
    }

    fn offset(self) -> i16 {
        i16::from_le_bytes([self.0[2], self.0[3]])
    }

    pub(crate) fn immediate(self) -> i32 {
        i32::from_le_bytes([self.0[4], self.0[5], self.0[6], self.0[7]])
    }

    pub(crate) fn set_immediate(&mut self, value: i32) {
        self.0[4..].copy_from_slice(&value.to_le_bytes());
    }
}

/// Runs a program with `r1` = `context`. It may read and write `memory`, addresses of this process, and its
/// stack; `helper` gets the number of a helper and its arguments, and answers with what it returns.
///
/// # Safety
/// `memory` is valid for reads and writes, but what the program does not write may be read-only.
pub(crate) unsafe fn run(
    program: &[Instruction],
    memory: &[Range<u64>],
    context: u64,
    helper: impl Fn(i32, [u64; 5]) -> Option<u64>,
) -> Result<u64, String> {
    let stack = [0u64; STACK_BYTES / 8 * FRAMES];
    let bottom = stack.as_ptr() as u64;
    let stack_range = bottom..bottom + (STACK_BYTES * FRAMES) as u64;
    let allowed = [&[stack_range], memory].concat();
    let mut r = [0u64; 16]; // 11 exist; the encoding has room for 16
    (r[1], r[10]) = (context, bottom + STACK_BYTES as u64);
    let mut callers: Vec<(usize, [u64; 4])> = Vec::new();
    let mut at = 0;
    for _ in 0..MOST_STEPS {
        let i = *program.get(at).ok_or_else(|| format!("instruction {at}: past the end"))?;
        let here = at;
        let fault = |what: &str| format!("instruction {here}, opcode {:#04x}: {what}", i.opcode());
        let (d, s) = (i.destination(), i.source());
        let immediate = i64::from(i.immediate()) as u64;
        let operand = if i.opcode() & 8 == 0 { immediate } else { r[s] };
        let address =
            |base: u64, bytes: u64| place(base, i.offset(), bytes, &allowed).ok_or_else(|| fault(FOREIGN));
        let bytes = 1 << [2, 1, 0, 3][usize::from(i.opcode() >> 3 & 3)];
        let next = at + 1;
        at = next;
        match i.opcode() & 7 {
            0 if i.opcode() == LOAD_64 => {
                let high = program.get(next).ok_or_else(|| fault("the second half is missing"))?.immediate();
                r[d] = u64::from(i.immediate() as u32) | u64::from(high as u32) << 32;
                at += 1;
            }
            1 if i.opcode() >> 5 == 3 => {
                let from = address(r[s], bytes)? as *const u8;
                let mut word = [0; 8];
                // SAFETY: within memory or the stack.
                unsafe { from.copy_to_nonoverlapping(word.as_mut_ptr(), bytes as usize) };
                r[d] = u64::from_le_bytes(word);
            }
            class @ (2 | 3) if i.opcode() >> 5 == 3 => {
                let word = if class == 2 { immediate } else { r[s] }.to_le_bytes();
                let to = address(r[d], bytes)? as *mut u8;
                // SAFETY: as above.
                unsafe { to.copy_from_nonoverlapping(word.as_ptr(), bytes as usize) };
            }
            class @ (4 | 7) if i.offset() == 0 => {
                let narrow = class == 4;
                let result = arithmetic(i.opcode() >> 4, r[d], operand, narrow);
                r[d] = result.ok_or_else(|| fault(UNKNOWN))?;
            }
            5 if i.opcode() >> 4 == 8 && s == LOCAL => {
                if callers.len() + 1 == FRAMES {
                    return Err(fault(&format!("too deep; allowed: {FRAMES} frames")));
                }
                callers.push((next, [r[6], r[7], r[8], r[9]]));
                r[10] += STACK_BYTES as u64;
                at = next.wrapping_add_signed(i.immediate() as isize);
            }
            5 if i.opcode() >> 4 == 8 => {
                r[0] = helper(i.immediate(), [r[1], r[2], r[3], r[4], r[5]])
                    .ok_or_else(|| fault(UNKNOWN_HELPER))?;
            }
            5 if i.opcode() >> 4 == 9 => {
                let Some((back, saved)) = callers.pop() else { return Ok(r[0]) };
                r[6..10].copy_from_slice(&saved);
                r[10] -= STACK_BYTES as u64;
                at = back;
            }
            class @ (5 | 6) => {
                let narrow = class == 6;
                if jumps(i.opcode() >> 4, r[d], operand, narrow).ok_or_else(|| fault(UNKNOWN))? {
                    at = next.wrapping_add_signed(isize::from(i.offset()));
                }
            }
            _ => return Err(fault(UNKNOWN)),
        }
    }
    Err(format!("does not end in {MOST_STEPS} instructions"))
}

/// Address of so many bytes at an offset, if they are within one of these ranges.
fn place(base: u64, offset: i16, bytes: u64, allowed: &[Range<u64>]) -> Option<u64> {
    let start = base.wrapping_add(i64::from(offset) as u64);
    let end = start.wrapping_add(bytes);
    let is_within = |range: &Range<u64>| range.start <= start && start < end && end <= range.end;
    allowed.iter().any(is_within).then_some(start)
}

/// RFC 9669 section 4.1; `narrow`: on the low 32 bits, and the upper ones become zero.
fn arithmetic(operation: u8, a: u64, b: u64, narrow: bool) -> Option<u64> {
    let (a, b) = if narrow { (a & 0xffff_ffff, b & 0xffff_ffff) } else { (a, b) };
    let shift = b as u32 & if narrow { 31 } else { 63 };
    let result = match operation {
        0x0 => a.wrapping_add(b),
        0x1 => a.wrapping_sub(b),
        0x2 => a.wrapping_mul(b),
        0x3 => a.checked_div(b).unwrap_or(0),
        0x4 => a | b,
        0x5 => a & b,
        0x6 => a << shift,
        0x7 => a >> shift,
        0x8 => a.wrapping_neg(),
        0x9 => a.checked_rem(b).unwrap_or(a),
        0xa => a ^ b,
        0xb => b,
        0xc if narrow => (a as i32 >> shift) as u64,
        0xc => (a as i64 >> shift) as u64,
        _ => return None,
    };
    Some(if narrow { result & 0xffff_ffff } else { result })
}

/// RFC 9669 section 4.3: whether a jump is taken.
fn jumps(condition: u8, a: u64, b: u64, narrow: bool) -> Option<bool> {
    let (a, b) = if narrow { (a & 0xffff_ffff, b & 0xffff_ffff) } else { (a, b) };
    let signed = |x: u64| if narrow { i64::from(x as i32) } else { x as i64 };
    Some(match condition {
        0x0 => true,
        0x1 => a == b,
        0x2 => a > b,
        0x3 => a >= b,
        0x4 => a & b != 0,
        0x5 => a != b,
        0x6 => signed(a) > signed(b),
        0x7 => signed(a) >= signed(b),
        0xa => a < b,
        0xb => a <= b,
        0xc => signed(a) < signed(b),
        0xd => signed(a) <= signed(b),
        _ => return None,
    })
}
