//! The protocol of `lfn send` and `lfn recv`, on one stream. Integers are little-endian.
//!
//! The sender begins with [`MAGIC`], the number of files (u32), and for each file its name (u16 length,
//! UTF-8, parts separated by `/`) and size (u64). The receiver answers [`READY`] and an entry for each file
//! that exists: [`WHOLE`] and its index (u32) if it has that size, else [`PART`], index and bytes (u64);
//! [`END`] ends the list. It reveals no hash. The sender answers each entry with [`CLAIM`], index, number of
//! bytes (u64) and their hash; [`END`] ends the list. The receiver answers each claim with [`SAME`] or
//! [`OTHER`].
//!
//! The incomplete files follow: index, offset (the bytes that were [`SAME`], or 0), and extents: [`DATA`]
//! with u32 bytes, [`HOLE`] with u64 bytes; [`END`] with the hash of the whole file. The index u32::MAX ends
//! them. The receiver hashes the files on its disk, and answers [`DONE`] and the number of files with a
//! different hash. Instead of any answer it may send [`REFUSED`] and the reason (u16 length, UTF-8), and
//! close. An end that hashes while the other waits sends [`BUSY`] at intervals.

use crate::{Stream, TransferError};

pub(crate) const MAGIC: [u8; 8] = *b"lfnudt-2";
pub(crate) const END: u8 = 0;
pub(crate) const READY: u8 = 1;
pub(crate) const DONE: u8 = 2;
pub(crate) const REFUSED: u8 = 3;
pub(crate) const BUSY: u8 = 4;
pub(crate) const PART: u8 = 5;
pub(crate) const WHOLE: u8 = 6;
pub(crate) const CLAIM: u8 = 7;
pub(crate) const SAME: u8 = 8;
pub(crate) const OTHER: u8 = 9;
pub(crate) const DATA: u8 = 1;
pub(crate) const HOLE: u8 = 2;
/// Ends a list of files.
pub(crate) const NO_FILE: u32 = u32::MAX;
/// Limits of a peer's list: files, and bytes of names.
pub(crate) const MAX_FILES: u32 = 1 << 20;
pub(crate) const MAX_NAME_BYTES: u64 = 64 << 20;

impl Stream {
    pub(crate) fn read_array<const N: usize>(&mut self) -> Result<[u8; N], TransferError> {
        let mut bytes = [0; N];
        self.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    pub(crate) fn read_u8(&mut self) -> Result<u8, TransferError> {
        Ok(self.read_array::<1>()?[0])
    }

    pub(crate) fn read_u32(&mut self) -> Result<u32, TransferError> {
        Ok(u32::from_le_bytes(self.read_array()?))
    }

    pub(crate) fn read_u64(&mut self) -> Result<u64, TransferError> {
        Ok(u64::from_le_bytes(self.read_array()?))
    }

    pub(crate) fn read_text(&mut self) -> Result<String, TransferError> {
        let mut bytes = vec![0; usize::from(u16::from_le_bytes(self.read_array()?))];
        self.read_exact(&mut bytes)?;
        String::from_utf8(bytes).map_err(|_| TransferError::Protocol("a text that is not UTF-8".into()))
    }

    pub(crate) fn write_text(&mut self, text: &str) -> Result<(), TransferError> {
        let most = usize::from(u16::MAX);
        let end = (0..=text.len().min(most)).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        self.write(&(end as u16).to_le_bytes())?;
        self.write(&text.as_bytes()[..end])
    }

    /// The peer's next message, or the reason of its refusal.
    pub(crate) fn word(&mut self) -> Result<u8, TransferError> {
        loop {
            match self.read_u8()? {
                BUSY => {}
                // The peer's text is shown in a terminal, so control characters are replaced.
                REFUSED => {
                    let why = self.read_text()?;
                    let why = why.chars().map(|c| if c.is_control() { '?' } else { c }).take(2000).collect();
                    return Err(TransferError::Refused(why));
                }
                word => return Ok(word),
            }
        }
    }

    /// The receiver's answer of this kind, or the reason of its refusal.
    pub(crate) fn expect(&mut self, answer: u8) -> Result<(), TransferError> {
        match self.word()? {
            got if got == answer => Ok(()),
            got => Err(TransferError::Protocol(format!("answer {got} in place of {answer}"))),
        }
    }
}
