//! The protocol of `lfn send` and `lfn recv`, on one stream. Integers are little-endian.
//!
//! The sender begins: [`MAGIC`], the number of files (u32), and of each its name (u16 length, UTF-8, parts
//! separated by `/`) and size (u64). The receiver answers [`READY`] and, of each file that is there in part
//! or whole, its index (u32), bytes (u64) and their BLAKE3 hash; u32::MAX ends the list. Then come the
//! files that are not there whole: index, offset (u64: what was there, or 0 if its hash is another), and
//! extents: [`DATA`] with u32 bytes, [`HOLE`] with u64 bytes; [`END`] with the hash of the whole file.
//! u32::MAX ends them. The receiver answers [`DONE`] and the number of files whose hash was another. In
//! place of any answer it may say [`REFUSED`] and why (u16 length, UTF-8), and close.

use crate::{Stream, TransferError};

pub(crate) const MAGIC: [u8; 8] = *b"lfnudt-1";
pub(crate) const READY: u8 = 1;
pub(crate) const DONE: u8 = 2;
pub(crate) const REFUSED: u8 = 3;
pub(crate) const END: u8 = 0;
pub(crate) const DATA: u8 = 1;
pub(crate) const HOLE: u8 = 2;
/// Ends a list of files.
pub(crate) const NO_FILE: u32 = u32::MAX;
/// A peer may make the receiver remember so many files, and so many bytes of names.
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
        let bytes = &text.as_bytes()[..text.len().min(usize::from(u16::MAX))];
        self.write(&(bytes.len() as u16).to_le_bytes())?;
        self.write(bytes)
    }

    /// The receiver's answer of this kind, or why it refuses.
    pub(crate) fn expect(&mut self, answer: u8) -> Result<(), TransferError> {
        match self.read_u8()? {
            REFUSED => Err(TransferError::Refused(self.read_text()?)),
            got if got == answer => Ok(()),
            got => Err(TransferError::Protocol(format!("answer {got} in place of {answer}"))),
        }
    }
}
