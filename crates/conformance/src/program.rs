//! The programs of a BPF object, linked.
//!
//! No loader relocates their accesses to the kernel's structs: they stay as the compiler saw them, that
//! is, as kernel/minimal.bpf.h lays them out. The rest is the work of a linker: the functions of
//! `.text` follow the program that calls them, and constants get an address.

use crate::machine::{Instruction, CALL, LOAD_64, LOCAL};
use crate::Error;
use object::elf::{R_BPF_64_32, R_BPF_64_64};
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget, SectionIndex};
use std::collections::BTreeMap;

/// The programs of one object by the name of the call that each serves, and its constants.
pub(crate) struct Programs {
    pub(crate) code: BTreeMap<String, Vec<Instruction>>,
    pub(crate) constants: Vec<Box<[u8]>>,
}

impl Programs {
    pub(crate) fn link(object: &[u8]) -> Result<Self, Error> {
        let file = ElfFile64::parse(object).map_err(odd)?;
        let (mut constants, mut addresses) = (Vec::new(), BTreeMap::new());
        for section in file.sections().filter(|s| s.name().is_ok_and(|n| n.starts_with(".rodata"))) {
            let data: Box<[u8]> = section.data().map_err(odd)?.into();
            addresses.insert(section.index().0, data.as_ptr() as u64);
            constants.push(data);
        }
        let text = file.section_by_name(".text").map(|section| section.index());
        let linker = Linker { file, text, addresses };
        let mut code = BTreeMap::new();
        for section in linker.file.sections() {
            if let Some(call) = section.name().ok().and_then(|name| name.strip_prefix("struct_ops/")) {
                let mut program = linker.instructions(section.index())?;
                let begin = program.len();
                linker.relocate(&mut program, section.index(), 0, begin)?;
                if let Some(text) = text {
                    program.extend(linker.instructions(text)?);
                    linker.relocate(&mut program, text, begin, begin)?;
                }
                code.insert(call.to_owned(), program);
            }
        }
        Ok(Self { code, constants })
    }
}

fn odd(what: impl std::fmt::Display) -> Error {
    Error::Object(what.to_string())
}

struct Linker<'a> {
    file: ElfFile64<'a>,
    text: Option<SectionIndex>,
    /// Where the constants of a section lie.
    addresses: BTreeMap<usize, u64>,
}

impl Linker<'_> {
    fn instructions(&self, section: SectionIndex) -> Result<Vec<Instruction>, Error> {
        let section = self.file.section_by_index(section).map_err(odd)?;
        let (words, rest) = section.data().map_err(odd)?.as_chunks::<8>();
        if !rest.is_empty() {
            return Err(odd(format!(
                "section {}: {} bytes; allowed: a multiple of 8",
                section.name().unwrap_or("?"),
                8 * words.len() + rest.len()
            )));
        }
        Ok(words.iter().map(|&word| Instruction(word)).collect())
    }

    /// Relocates what a section became at index `at` of a program; `.text` begins at `text_at`.
    fn relocate(
        &self,
        program: &mut [Instruction],
        section: SectionIndex,
        at: usize,
        text_at: usize,
    ) -> Result<(), Error> {
        for (offset, relocation) in self.file.section_by_index(section).map_err(odd)?.relocations() {
            let (RelocationTarget::Symbol(symbol), RelocationFlags::Elf { r_type }) =
                (relocation.target(), relocation.flags())
            else {
                return Err(odd(format!(
                    "relocation at byte {offset}: without a symbol; allowed: symbols of this object"
                )));
            };
            let symbol = self.file.symbol_by_index(symbol).map_err(odd)?;
            let target = symbol.section_index().ok_or_else(|| {
                odd(format!(
                    "symbol {:?}: undefined; allowed: symbols of this object",
                    symbol.name().unwrap_or("?")
                ))
            })?;
            let index = at + offset as usize / 8;
            let Some(found) = program.get(index).copied() else {
                return Err(odd(format!(
                    "relocation at byte {offset}: beyond the program of {} instructions",
                    program.len()
                )));
            };
            let immediate = i64::from(found.immediate());
            match (found.opcode(), r_type) {
                (CALL, R_BPF_64_32) if found.source() == LOCAL && Some(target) == self.text => {
                    let callee = text_at as i64 + symbol.address() as i64 / 8 + immediate + 1;
                    program[index].set_immediate((callee - index as i64 - 1) as i32);
                }
                (LOAD_64, R_BPF_64_64) if index + 1 < program.len() => {
                    // A map has no address here: its one user, the helper, knows which it is.
                    let address = self.addresses.get(&target.0).map_or(0, |constants| {
                        constants.wrapping_add(symbol.address()).wrapping_add(immediate as u64)
                    });
                    program[index].set_immediate(address as i32);
                    program[index + 1].set_immediate((address >> 32) as i32);
                }
                _ => return Err(odd(format!("instruction {index}: relocation of type {r_type}; allowed: {R_BPF_64_64} of a load, {R_BPF_64_32} of a local call"))),
            }
        }
        Ok(())
    }
}
