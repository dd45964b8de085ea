//! BLAKE3 of parts of files, while the connection lives on.

use std::fs::File;

use blake3::Hasher;

use crate::stream::{read_at, CHUNK_BYTES};
use crate::{Stream, TransferError};

static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];

/// Takes the first `bytes` of a file in.
pub(crate) fn hash_file(
    hasher: &mut Hasher,
    file: &File,
    bytes: u64,
    name: &str,
    stream: &mut Stream,
) -> Result<(), TransferError> {
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut at = 0;
    while at < bytes {
        let most = (bytes - at).min(CHUNK_BYTES as u64) as usize;
        let got = read_at(file, &mut buffer[..most], at).map_err(TransferError::io(name))?;
        if got == 0 {
            return Err(TransferError::file(name.as_ref(), "it became shorter meanwhile"));
        }
        hasher.update(&buffer[..got]);
        at += got as u64;
        stream.working()?;
    }
    Ok(())
}

/// Takes a hole in.
pub(crate) fn hash_zeros(
    hasher: &mut Hasher,
    mut bytes: u64,
    stream: &mut Stream,
) -> Result<(), TransferError> {
    while bytes > 0 {
        let take = bytes.min(ZEROS.len() as u64);
        hasher.update(&ZEROS[..take as usize]);
        bytes -= take;
        stream.working()?;
    }
    Ok(())
}
