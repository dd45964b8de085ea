//! Is a law in Linux the law of the header, bit for bit?
//!
//! The shim of kernel/law.bpf.h runs in three places on the same sockets: in Linux, whose calls
//! kernel/record.bpf.h writes down; compiled natively; and as the very BPF object that `lfn kernel load`
//! loads, in a virtual machine. [`replay`] gives the second and third what the first found, and compares
//! all that they leave: windows, pacing rate, the law's state, the shim's own.
//!
//! Linux itself runs these programs in connections only: BPF_PROG_TEST_RUN knows struct_ops for a dummy
//! alone. Of the virtual machines that there are, rbpf 0.4 compares 64-bit numbers with an immediate that
//! it does not sign-extend, so `r3 == -1` (an ssthresh not set yet) is never true, and bbr, bic and cubic differ;
//! solana_rbpf has a dialect of its own. So `machine` is one, of RFC 9669.

mod machine;
mod program;

use program::Programs;
use std::collections::BTreeMap;
use std::ffi::{c_char, c_void, CStr};
use std::fmt;

/// `struct tcp_congestion_ops` of kernel/minimal.bpf.h; only C looks into it.
#[repr(C)]
pub struct Operations {
    _opaque: [u8; 0],
}

/// Words of `struct image`.
const IMAGE: usize = 60;
/// The law's state begins here, of 13 words; the shim's storage follows.
const PRIVATE: usize = 33;

/// A socket before or after a call: fields of Linux, then the law's state, then the shim's.
pub type Image = [u64; IMAGE];
/// A socket of which nothing is known.
pub const EMPTY: Image = [0; IMAGE];

/// `bpf_sk_storage_get`, which finds the shim's own state of a socket.
const SK_STORAGE_GET: i32 = 107;
/// `bpf_tcp_send_ack`, which sends an ACK of all before its second argument.
const TCP_SEND_ACK: i32 = 116;

extern "C" {
    static lfn_machine_bytes: u64;
    static lfn_image_bytes: u64;
    static lfn_record_bytes: u64;
    static lfn_context_offset: u64;
    static lfn_image_names: [*const c_char; PRIVATE];
    fn lfn_storage(flags: u64) -> *mut c_void;
    fn lfn_send_ack(rcv_nxt: u32);
    fn lfn_sent(machine: *const u64) -> u64;
    fn lfn_set(machine: *mut u64, record: *const Record, image: *const Image);
    fn lfn_call(law: *const Operations, machine: *mut u64, call: u64) -> u64;
    fn lfn_take(machine: *mut u64, image: *mut Image);
}

include!(concat!(env!("OUT_DIR"), "/laws.rs"));

/// A law that has the target `kernel`.
pub struct Law {
    /// Its name in the registry.
    pub name: &'static str,
    operations: unsafe extern "C" fn() -> *const Operations,
    object: &'static [u8],
}

/// Errors of this crate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A BPF object that is not as the compiler makes it.
    #[error("BPF object: {0}")]
    Object(String),
    /// The virtual machine refused a program, or stopped it.
    #[error("{call}: {what}")]
    Machine {
        /// The call that it served.
        call: &'static str,
        /// The virtual machine's message.
        what: String,
    },
    /// Records that cannot be read.
    #[error("records: {0}")]
    Records(String),
}

/// A call of Linux, `enum call` of kernel/record.bpf.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Call {
    Init,
    PktsAcked,
    CongAvoid,
    Ssthresh,
    CwndEvent,
    SetState,
    UndoCwnd,
    CongControl,
}

impl Call {
    /// All calls, in the order of their numbers.
    pub const ALL: [Self; 8] = [
        Self::Init,
        Self::PktsAcked,
        Self::CongAvoid,
        Self::Ssthresh,
        Self::CwndEvent,
        Self::SetState,
        Self::UndoCwnd,
        Self::CongControl,
    ];

    /// The member of `struct tcp_congestion_ops`.
    pub fn name(self) -> &'static str {
        [
            "init",
            "pkts_acked",
            "cong_avoid",
            "ssthresh",
            "cwnd_event",
            "set_state",
            "undo_cwnd",
            "cong_control",
        ][self as usize]
    }
}

/// `struct record` of kernel/record.bpf.h.
#[repr(C)]
#[derive(Clone, Debug)]
pub struct Record {
    /// Tells connections apart.
    pub socket: u64,
    /// Number of the record.
    pub sequence: u64,
    /// [`Call`] by number.
    pub call: u64,
    /// Arguments that are numbers.
    pub arguments: [u64; 2],
    /// The data behind the pointer argument.
    pub sample: [u64; 7],
    /// The return value.
    pub result: u64,
    /// The socket before.
    pub before: Image,
    /// The socket after.
    pub after: Image,
}

const RECORD: usize = std::mem::size_of::<Record>();

impl Record {
    /// Records as Linux wrote them, none missing.
    ///
    /// # Errors
    /// Bytes that are no whole number of records, an unknown call, a gap in the sequence.
    pub fn read_all(bytes: &[u8]) -> Result<Vec<Self>, Error> {
        if !bytes.chunks_exact(RECORD).remainder().is_empty() {
            return Err(Error::Records(format!("{} bytes; allowed: a multiple of {RECORD}", bytes.len())));
        }
        let mut records = Vec::with_capacity(bytes.len() / RECORD);
        for chunk in bytes.chunks_exact(RECORD) {
            // SAFETY: `Record` is plain words, any bits are one, and the chunk is as long.
            records.push(unsafe { chunk.as_ptr().cast::<Self>().read_unaligned() });
        }
        records.sort_by_key(|record| record.sequence);
        for (i, record) in records.iter().enumerate() {
            if record.sequence != i as u64 {
                return Err(Error::Records(format!("number {i} is missing: the ring buffer was full")));
            }
            if record.call as usize >= Call::ALL.len() {
                return Err(Error::Records(format!(
                    "number {i} is of call {}; allowed: 0 to {}",
                    record.call,
                    Call::ALL.len() - 1
                )));
            }
        }
        Ok(records)
    }

    /// Which call it was.
    pub fn call(&self) -> Call {
        Call::ALL[self.call as usize]
    }
}

/// The laws that Linux can run, in the registry's order.
pub fn laws() -> &'static [Law] {
    LAWS
}

/// Memory of one call: a socket, its storage, its arguments.
struct Memory(Vec<u64>);

impl Memory {
    fn new() -> Self {
        // SAFETY: constants of image.c.
        let bytes = unsafe {
            assert_eq!(lfn_image_bytes as usize, IMAGE * 8);
            assert_eq!(lfn_record_bytes as usize, RECORD);
            lfn_machine_bytes as usize
        };
        Self(vec![0; bytes.div_ceil(8)])
    }

    fn set(&mut self, record: &Record, image: &Image) {
        // SAFETY: as long as image.c says, and it keeps no pointer to the other two.
        unsafe { lfn_set(self.0.as_mut_ptr(), record, image) }
    }

    fn take(&mut self) -> Image {
        let mut image = [0; IMAGE];
        // SAFETY: as above.
        unsafe { lfn_take(self.0.as_mut_ptr(), &mut image) };
        image
    }

    fn sent(&self) -> Option<SentAck> {
        // SAFETY: as above.
        let word = unsafe { lfn_sent(self.0.as_ptr()) };
        (word >> 33 != 0).then_some(SentAck { rcv_nxt: word as u32, ece: word >> 32 & 1 != 0 })
    }

    /// Where it lies, for programs that hold pointers into it.
    fn range(&self) -> std::ops::Range<u64> {
        let start = self.0.as_ptr() as u64;
        start..start + 8 * self.0.len() as u64
    }
}

/// The state after a call, and its return value.
pub type Outcome = (Image, u64);

/// Runs calls of a law natively.
pub struct Native {
    operations: *const Operations,
    memory: Memory,
}

impl Native {
    /// The shim of a law as the C compiler made it.
    pub fn new(law: &Law) -> Self {
        // SAFETY: returns the address of a constant.
        Self { operations: unsafe { (law.operations)() }, memory: Memory::new() }
    }

    /// The outcome of the record's call on a socket that is as `image` says.
    pub fn call(&mut self, record: &Record, image: &Image) -> Outcome {
        self.memory.set(record, image);
        // SAFETY: the law has this call, as Linux made it; its memory is set.
        let result = unsafe { lfn_call(self.operations, self.memory.0.as_mut_ptr(), record.call) };
        (self.memory.take(), result)
    }

    /// The ACK that the last call sent.
    pub fn sent(&self) -> Option<SentAck> {
        self.memory.sent()
    }
}

/// An ACK that a call sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentAck {
    /// All before this sequence number has arrived.
    pub rcv_nxt: u32,
    /// It echoes a mark.
    pub ece: bool,
}

/// Runs calls of a law's BPF object, the one that `lfn kernel load` loads, in a virtual machine.
pub struct Virtual {
    programs: Programs,
    memory: Memory,
}

impl Virtual {
    /// The programs of a law's object.
    ///
    /// # Errors
    /// It is not as the compiler makes it.
    pub fn new(law: &Law) -> Result<Self, Error> {
        Ok(Self { programs: Programs::link(law.object)?, memory: Memory::new() })
    }

    /// Whether the law has this call.
    pub fn serves(&self, call: Call) -> bool {
        self.programs.code.contains_key(call.name())
    }

    /// The outcome of the record's call on a socket that is as `image` says.
    ///
    /// # Errors
    /// There is no program for it, or it did what no program may.
    pub fn call(&mut self, record: &Record, image: &Image) -> Result<Outcome, Error> {
        let call = record.call();
        let fault = |what| Error::Machine { call: call.name(), what };
        let program = self.programs.code.get(call.name()).ok_or_else(|| {
            let names: Vec<&str> = self.programs.code.keys().map(String::as_str).collect();
            fault(format!("the object has no program for it; allowed: {}", names.join(", ")))
        })?;
        self.memory.set(record, image);
        let mut ranges = vec![self.memory.range()];
        for constants in &self.programs.constants {
            let start = constants.as_ptr() as u64;
            ranges.push(start..start + constants.len() as u64);
        }
        // SAFETY: a constant of image.c.
        let context = self.memory.range().start + unsafe { lfn_context_offset };
        // SAFETY: the ranges are ours, and no program writes its constants.
        let result = unsafe {
            machine::run(program, &ranges, context, |helper, arguments| match helper {
                SK_STORAGE_GET => Some(lfn_storage(arguments[3]) as u64),
                TCP_SEND_ACK => {
                    lfn_send_ack(arguments[1] as u32);
                    Some(0)
                }
                _ => None,
            })
        };
        let result = result.map_err(fault)?;
        // Other calls have no result; their register is ignored.
        let result = if matches!(call, Call::Ssthresh | Call::UndoCwnd) { result & 0xffff_ffff } else { 0 };
        Ok((self.memory.take(), result))
    }

    /// The ACK that the last call sent.
    pub fn sent(&self) -> Option<SentAck> {
        self.memory.sent()
    }
}

/// Two places where one call ended differently.
#[derive(Debug)]
pub struct Difference {
    /// Number of the record, from 0.
    pub record: usize,
    /// Which call.
    pub call: Call,
    /// The machine that differs: "native" or "virtual machine".
    pub place: &'static str,
    /// What, with the value of Linux and the other.
    pub what: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "record {}, {}: {}: {}", self.record, self.call.name(), self.place, self.what)
    }
}

/// The first word in which two outcomes differ, and both values.
pub fn difference(a: &Outcome, b: &Outcome) -> Option<String> {
    if a.1 != b.1 {
        return Some(format!("returned {}, not {}", b.1, a.1));
    }
    let word = (0..IMAGE).find(|&word| a.0[word] != b.0[word])?;
    Some(format!("{} is {:#x}, not {:#x}", word_name(word), b.0[word], a.0[word]))
}

/// Offset of a field of Linux in an image.
pub fn word(name: &str) -> Option<usize> {
    (0..PRIVATE).find(|&word| word_name(word) == name)
}

fn word_name(word: usize) -> String {
    if word < PRIVATE {
        // SAFETY: a string constant of image.c.
        return unsafe { CStr::from_ptr(lfn_image_names[word]) }.to_string_lossy().into_owned();
    }
    let word = word - PRIVATE;
    if word < 13 {
        format!("icsk_ca_priv[{word}]")
    } else {
        format!("word {} of the shim's storage", word - 13)
    }
}

/// Runs every recorded call natively and in the virtual machine, from what Linux found before it, which for
/// the law's state is what the two left. Returns how many calls there were of each kind.
///
/// # Errors
/// The object cannot be run; the other error is the first difference.
pub fn replay(law: &Law, records: &[Record]) -> Result<Result<[usize; Call::ALL.len()], Difference>, Error> {
    let (mut native, mut machine) = (Native::new(law), Virtual::new(law)?);
    let mut states: BTreeMap<u64, Image> = BTreeMap::new();
    let mut counts = [0; Call::ALL.len()];
    for (number, record) in records.iter().enumerate() {
        let call = record.call();
        counts[call as usize] += 1;
        let differs = |place, what| Ok(Err(Difference { record: number, call, place, what }));
        if call != Call::Init {
            if let Some(state) = states.get(&record.socket) {
                // Only the shim writes here; otherwise a call is missing. The last word is of arrivals, which
                // are not recorded.
                if let Some(word) = (PRIVATE..IMAGE - 1).find(|&w| state[w] != record.before[w]) {
                    return differs("before the call", format!("{} has changed", word_name(word)));
                }
            }
        }
        let linux = (record.after, record.result);
        let ours = native.call(record, &record.before);
        if let Some(what) = difference(&linux, &ours) {
            return differs("native", what);
        }
        if let Some(what) = difference(&linux, &machine.call(record, &record.before)?) {
            return differs("virtual machine", what);
        }
        states.insert(record.socket, ours.0);
    }
    Ok(Ok(counts))
}
