//! Hash of a file's contents. Holes take no time, and the hash does not depend on where they are.

use std::fs::File;
use std::io;
use std::sync::{Mutex, PoisonError};

use blake3::Hasher;
use rustix::fs::{seek, SeekFrom};
use rustix::io::Errno;

use crate::place::read_at;
use crate::stream::CHUNK_BYTES;
use crate::{Stream, TransferError};

/// Block size for hashing, sending and resuming, in bytes.
pub(crate) const BLOCK_BYTES: u64 = 64 * 1024;
static ZEROS: [u8; BLOCK_BYTES as usize] = [0; BLOCK_BYTES as usize];

/// BLAKE3 of the number (u64) and the BLAKE3 hash of each block that is not all zeros, and of the size (u64).
#[derive(Clone, Default)]
pub(crate) struct FileHash(Hasher);

impl FileHash {
    /// Adds bytes that begin at a block's start, and end at a block's or the file's end.
    pub fn take(&mut self, at: u64, bytes: &[u8]) {
        for (number, block) in (at / BLOCK_BYTES..).zip(bytes.chunks(BLOCK_BYTES as usize)) {
            if block != &ZEROS[..block.len()] {
                self.0.update(&number.to_le_bytes());
                self.0.update(blake3::hash(block).as_bytes());
            }
        }
    }

    /// The hash of a file that ends here.
    pub fn of(&self, bytes: u64) -> [u8; 32] {
        *self.0.clone().update(&bytes.to_le_bytes()).finalize().as_bytes()
    }

    /// Adds bytes `at..end` of a file, and serves the connection meanwhile; `at` is a block's start. `turn`
    /// limits all users of it to one core.
    pub fn take_file(
        &mut self,
        (file, name): (&File, &str),
        mut at: u64,
        end: u64,
        turn: Option<&Mutex<()>>,
        stream: &mut Stream,
    ) -> Result<(), TransferError> {
        let mut buffer = vec![0; CHUNK_BYTES];
        loop {
            at = next_data(file, at, end).map_err(TransferError::io(name))?;
            if at >= end {
                return Ok(());
            }
            let most = (end - at).min(CHUNK_BYTES as u64) as usize;
            let got = {
                let _turn = turn.map(|turn| turn.lock().unwrap_or_else(PoisonError::into_inner));
                let got = read_at(file, &mut buffer[..most], at).map_err(TransferError::io(name))?;
                self.take(at, &buffer[..got]);
                got
            };
            if got < most {
                return Err(TransferError::file(name.as_ref(), "it became shorter meanwhile"));
            }
            at += got as u64;
            stream.working()?;
        }
    }
}

/// Start of the first block with data at or after `at`; without support of holes, every block has data.
pub(crate) fn next_data(file: &File, at: u64, end: u64) -> io::Result<u64> {
    match seek(file, SeekFrom::Data(at)) {
        Ok(data) => Ok((data - data % BLOCK_BYTES).max(at).min(end)),
        Err(Errno::NXIO) => Ok(end),
        Err(Errno::INVAL | Errno::NOTSUP) => Ok(at),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_cost_nothing_and_sizes_and_places_count() {
        let block = [7; BLOCK_BYTES as usize];
        let hash = |blocks: &[(u64, &[u8])], bytes| {
            let mut hash = FileHash::default();
            blocks.iter().for_each(|(at, bytes)| hash.take(*at, bytes));
            hash.of(bytes)
        };
        let plain = hash(&[(0, &block)], 3 * BLOCK_BYTES);
        assert_eq!(plain, hash(&[(0, &block), (BLOCK_BYTES, &ZEROS)], 3 * BLOCK_BYTES));
        assert_ne!(plain, hash(&[(0, &block)], 3 * BLOCK_BYTES + 1));
        assert_ne!(plain, hash(&[(BLOCK_BYTES, &block)], 3 * BLOCK_BYTES));
        assert_ne!(hash(&[(0, &[1, 0])], 2), hash(&[(0, &[1])], 2));
    }
}
