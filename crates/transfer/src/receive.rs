//! The receiving side: `lfn recv`.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;

use blake3::Hasher;

use crate::connections::{each_connection, Served};
use crate::hashing::{hash_file, hash_zeros};
use crate::place::{Directory, Place};
use crate::statistics::{Tally, Teller};
use crate::wire::{DATA, DONE, END, HOLE, MAGIC, MAX_FILES, MAX_NAME_BYTES, NO_FILE, READY, REFUSED};
use crate::{Listener, Progress, Statistics, Stream, TransferError};

/// How to serve.
#[derive(Clone, Debug)]
pub struct Serving<'a> {
    /// Where files go.
    pub directory: &'a Path,
    /// The first transfer is the last.
    pub once: bool,
    /// Set when it is time to end; after [`Serving::once`] it is.
    pub stop: Arc<AtomicBool>,
}

/// Takes files from whoever connects, each connection in a thread of its own, until told to stop.
///
/// # Errors
/// When the directory is not there, or the listener fails.
pub fn serve(
    mut listener: Listener,
    serving: &Serving<'_>,
    tell: &mut dyn FnMut(Served),
) -> Result<(), TransferError> {
    let name = serving.directory.display().to_string();
    let directory = Arc::new(Directory::open(serving.directory).map_err(TransferError::io(name))?);
    each_connection(&mut listener, serving.once, &serving.stop, tell, move |stream, tell| {
        receive(stream, &directory, tell)
    })
}

struct Expected {
    name: String,
    bytes: u64,
}

fn receive(
    stream: &mut Stream,
    directory: &Directory,
    tell: &mut dyn FnMut(&Progress),
) -> Result<Statistics, TransferError> {
    let mut tally = Tally::default();
    let result = take_files(stream, directory, &mut tally, &mut Teller::new(tell));
    match &result {
        Ok(differs) => {
            stream.write(&[DONE])?;
            stream.write(&differs.to_le_bytes())?;
        }
        // The connection is no use for a last word.
        Err(TransferError::Connection { .. } | TransferError::Interrupted) => {}
        Err(error) => {
            let text = match error {
                TransferError::Refused(why) => why.clone(),
                other => other.to_string(),
            };
            stream.write(&[REFUSED])?;
            stream.write_text(&text)?;
            stream.close()?;
        }
    }
    let differs = result?;
    let statistics = tally.finish(stream, None);
    stream.close()?;
    match differs {
        0 => Ok(statistics),
        count => Err(TransferError::Differs(count as usize)),
    }
}

fn take_files(
    stream: &mut Stream,
    directory: &Directory,
    tally: &mut Tally,
    teller: &mut Teller<'_>,
) -> Result<u32, TransferError> {
    if stream.read_array()? != MAGIC {
        return Err(TransferError::Protocol("something else than lfn send does".into()));
    }
    let expected = read_list(stream)?;
    stream.activity().known();
    tally.files = expected.len() as u64;
    tally.total_bytes = expected.iter().map(|file| file.bytes).fold(0, u64::saturating_add);
    let mut parts = tell_state(stream, directory, &expected)?;
    let mut differs = 0;
    let mut sent = 0;
    loop {
        let index = stream.read_u32()?;
        if index == NO_FILE {
            break;
        }
        let offset = stream.read_u64()?;
        let wrong = || TransferError::Protocol(format!("file {index} from byte {offset}"));
        let file = expected.get(index as usize).ok_or_else(wrong)?;
        let place = directory.place(&file.name).map_err(TransferError::Refused)?;
        let (part, hasher) = match (offset, parts.remove(&index)) {
            (0, _) => (place.begin().map_err(TransferError::io(&*file.name))?, Hasher::new()),
            (offset, Some((bytes, hasher))) if bytes == offset => (place.part().ok_or_else(wrong)?, hasher),
            _ => return Err(wrong()),
        };
        sent += file.bytes - offset;
        tally.resumed_bytes += offset;
        tally.done_bytes += offset;
        if take_file(stream, file, &part, offset, hasher, tally, teller)? {
            place.finish().map_err(TransferError::io(&*file.name))?;
        } else {
            place.discard().map_err(TransferError::io(&*file.name))?;
            differs += 1;
        }
    }
    // What was not sent was there.
    tally.resumed_bytes = tally.total_bytes.saturating_sub(sent);
    tally.done_bytes = tally.total_bytes;
    Ok(differs)
}

fn read_list(stream: &mut Stream) -> Result<Vec<Expected>, TransferError> {
    let count = stream.read_u32()?;
    if count >= MAX_FILES {
        return Err(TransferError::Refused(format!("{count} files at once; at most {}", MAX_FILES - 1)));
    }
    let (mut expected, mut name_bytes) = (Vec::new(), 0);
    for _ in 0..count {
        let name = stream.read_text()?;
        name_bytes += name.len() as u64;
        if name_bytes > MAX_NAME_BYTES {
            let why = format!("more than {MAX_NAME_BYTES} bytes of names");
            return Err(TransferError::Refused(why));
        }
        expected.push(Expected { name, bytes: stream.read_u64()? });
    }
    Ok(expected)
}

/// Says what is there already. Returns what is there in part: bytes, and the state of their hash.
fn tell_state(
    stream: &mut Stream,
    directory: &Directory,
    expected: &[Expected],
) -> Result<BTreeMap<u32, (u64, Hasher)>, TransferError> {
    // Every name is looked at before anything is promised.
    let places: Result<Vec<Place>, String> = match expected.len() {
        0..=256 => expected.iter().map(|file| directory.place(&file.name)).collect(),
        // Each holds its folder open.
        _ => expected.iter().try_for_each(|file| directory.place(&file.name).map(drop)).map(|()| Vec::new()),
    };
    drop(places.map_err(TransferError::Refused)?);
    stream.write(&[READY])?;
    let mut parts = BTreeMap::new();
    for (index, file) in expected.iter().enumerate() {
        let place = directory.place(&file.name).map_err(TransferError::Refused)?;
        let length = |file: &File| file.metadata().map_or(0, |metadata| metadata.len());
        let whole = place.whole().filter(|there| length(there) == file.bytes);
        let part = place.part().filter(|there| length(there) <= file.bytes);
        let is_part = whole.is_none();
        let Some(there) = whole.or(part) else { continue };
        let bytes = length(&there);
        if bytes == 0 {
            continue;
        }
        let mut hasher = Hasher::new();
        hash_file(&mut hasher, &there, bytes, &file.name, stream)?;
        stream.write(&(index as u32).to_le_bytes())?;
        stream.write(&bytes.to_le_bytes())?;
        stream.write(hasher.finalize().as_bytes())?;
        if is_part {
            parts.insert(index as u32, (bytes, hasher));
        }
    }
    stream.write(&NO_FILE.to_le_bytes())?;
    stream.flush()?;
    Ok(parts)
}

/// Takes the rest of a file; says whether its hash is the sender's.
fn take_file(
    stream: &mut Stream,
    file: &Expected,
    part: &File,
    mut at: u64,
    mut hasher: Hasher,
    tally: &mut Tally,
    teller: &mut Teller<'_>,
) -> Result<bool, TransferError> {
    let name = &*file.name;
    let beyond = || TransferError::Protocol(format!("more of {name} than its {} bytes", file.bytes));
    loop {
        match stream.read_u8()? {
            DATA => {
                let mut left = u64::from(stream.read_u32()?);
                if left > file.bytes - at {
                    return Err(beyond());
                }
                while left > 0 {
                    let got = stream.read()?;
                    let take = (got.len() as u64).min(left) as usize;
                    if take == 0 {
                        return Err(TransferError::Protocol(format!("an end in the middle of {name}")));
                    }
                    part.write_all_at(&got[..take], at).map_err(TransferError::io(name))?;
                    hasher.update(&got[..take]);
                    stream.consume(take)?;
                    at += take as u64;
                    left -= take as u64;
                    tally.done_bytes += take as u64;
                    teller.tell(stream, tally);
                }
            }
            HOLE => {
                let bytes = stream.read_u64()?;
                if bytes > file.bytes - at {
                    return Err(beyond());
                }
                at += bytes;
                part.set_len(at).map_err(TransferError::io(name))?;
                hash_zeros(&mut hasher, bytes, stream)?;
                tally.done_bytes += bytes;
            }
            END if at == file.bytes => return Ok(hasher.finalize() == stream.read_array::<32>()?),
            END => {
                return Err(TransferError::Protocol(format!("{at} of the {} bytes of {name}", file.bytes)))
            }
            other => return Err(TransferError::Protocol(format!("extent {other}"))),
        }
    }
}
