//! The sending side of `lfn send`.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use blake3::Hasher;
use rustix::fs::{seek, SeekFrom};
use rustix::io::Errno;

use crate::hashing::{hash_file, hash_zeros};
use crate::place::open_to_send;
use crate::statistics::{Tally, Teller};
use crate::stream::{read_at, CHUNK_BYTES};
use crate::wire::{DATA, DONE, END, HOLE, MAGIC, MAX_FILES, NO_FILE, READY};
use crate::{Plan, Progress, Statistics, Stream, TransferError};

/// What to send where.
#[derive(Clone, Debug)]
pub struct Sending<'a> {
    /// Files, and folders with all that is in them.
    pub paths: &'a [PathBuf],
    /// The receiver, for example `127.0.0.1:9000`.
    pub to: &'a str,
    /// Sizes, and what drives the sender.
    pub plan: Plan,
}

struct Entry {
    path: PathBuf,
    name: String,
    bytes: u64,
}

/// Sends files, and waits until the receiver has checked them. `tell` hears of progress; `interrupted` is
/// asked often, and ends the transfer when true. The same call again goes on where the last one ended.
///
/// # Errors
/// When a file cannot be read, the connection ends, or the receiver refuses or finds a difference.
pub fn send(
    sending: &Sending<'_>,
    interrupted: impl FnMut() -> bool + Send + 'static,
    tell: &mut dyn FnMut(&Progress),
) -> Result<Statistics, TransferError> {
    let entries = entries(sending.paths)?;
    let mut stream = Stream::connect(sending.to, &sending.plan)?;
    stream.interrupt_when(interrupted);
    let mut tally = Tally {
        files: entries.len() as u64,
        total_bytes: entries.iter().map(|entry| entry.bytes).sum(),
        ..Tally::default()
    };
    let mut teller = Teller::new(tell);
    let sent = transfer(&mut stream, &entries, &mut tally, &mut teller);
    // What the receiver said last explains why the connection ended.
    let differs = match sent {
        Err(TransferError::Connection { .. }) => stream.expect(DONE).and(sent)?,
        sent => sent?,
    };
    let statistics = tally.finish(&stream, Some(sending.plan.control.clone()));
    stream.close()?;
    match differs {
        0 => Ok(statistics),
        count => Err(TransferError::Differs(count as usize)),
    }
}

fn transfer(
    stream: &mut Stream,
    entries: &[Entry],
    tally: &mut Tally,
    teller: &mut Teller<'_>,
) -> Result<u32, TransferError> {
    stream.write(&MAGIC)?;
    stream.write(&(entries.len() as u32).to_le_bytes())?;
    for entry in entries {
        stream.write_text(&entry.name)?;
        stream.write(&entry.bytes.to_le_bytes())?;
    }
    stream.flush()?;
    stream.expect(READY)?;
    let mut there = vec![(0, [0; 32]); entries.len()];
    loop {
        let index = stream.read_u32()?;
        if index == NO_FILE {
            break;
        }
        let state = (stream.read_u64()?, stream.read_array()?);
        let place = there.get_mut(index as usize);
        *place.ok_or_else(|| TransferError::Protocol(format!("file {index} of {}", entries.len())))? = state;
    }
    for (index, (entry, (bytes, hash))) in entries.iter().zip(there).enumerate() {
        let file = open_to_send(&entry.path).map_err(TransferError::io(entry.path.display().to_string()))?;
        let mut hasher = Hasher::new();
        let mut offset = bytes.min(entry.bytes);
        hash_file(&mut hasher, &file, offset, &entry.name, stream)?;
        if hasher.finalize() != hash || bytes > entry.bytes {
            hasher = Hasher::new();
            offset = 0;
        }
        tally.done_bytes += offset;
        tally.resumed_bytes += offset;
        if offset < entry.bytes || entry.bytes == 0 {
            stream.write(&(index as u32).to_le_bytes())?;
            stream.write(&offset.to_le_bytes())?;
            send_file(stream, entry, &file, offset, &mut hasher, tally, teller)?;
        }
        teller.tell(stream, tally);
    }
    stream.write(&NO_FILE.to_le_bytes())?;
    stream.flush()?;
    stream.expect(DONE)?;
    stream.read_u32()
}

fn send_file(
    stream: &mut Stream,
    entry: &Entry,
    file: &File,
    mut at: u64,
    hasher: &mut Hasher,
    tally: &mut Tally,
    teller: &mut Teller<'_>,
) -> Result<(), TransferError> {
    let shorter = || TransferError::file(&entry.path, "it became shorter meanwhile");
    let mut buffer = vec![0; CHUNK_BYTES];
    while at < entry.bytes {
        let data = next_data(file, at, entry.bytes).map_err(TransferError::io(&*entry.name))?;
        if data > at {
            stream.write(&[HOLE])?;
            stream.write(&(data - at).to_le_bytes())?;
            hash_zeros(hasher, data - at, stream)?;
            tally.done_bytes += data - at;
            at = data;
            continue;
        }
        let end = match seek(file, SeekFrom::Hole(at)) {
            Ok(hole) => hole.min(entry.bytes),
            Err(_) => entry.bytes,
        };
        while at < end {
            let most = (end - at).min(CHUNK_BYTES as u64) as usize;
            let got = read_at(file, &mut buffer[..most], at).map_err(TransferError::io(&*entry.name))?;
            if got == 0 {
                return Err(shorter());
            }
            hasher.update(&buffer[..got]);
            stream.write(&[DATA])?;
            stream.write(&(got as u32).to_le_bytes())?;
            stream.write(&buffer[..got])?;
            at += got as u64;
            tally.done_bytes += got as u64;
            teller.tell(stream, tally);
        }
    }
    stream.write(&[END])?;
    stream.write(hasher.finalize().as_bytes())
}

/// Where data begin at or after `at`; a file system without holes has data everywhere.
fn next_data(file: &File, at: u64, end: u64) -> std::io::Result<u64> {
    match seek(file, SeekFrom::Data(at)) {
        Ok(data) => Ok(data.min(end)),
        Err(Errno::NXIO) => Ok(end),
        Err(Errno::INVAL | Errno::NOTSUP) => Ok(at),
        Err(error) => Err(error.into()),
    }
}

/// Every file under `paths`, by name below the folder that each path lies in.
fn entries(paths: &[PathBuf]) -> Result<Vec<Entry>, TransferError> {
    let mut entries = Vec::new();
    for path in paths {
        let whole = path.canonicalize().map_err(TransferError::io(path.display().to_string()))?;
        let name = whole.file_name().ok_or_else(|| TransferError::file(path, "it has no name"))?;
        add(&whole, Path::new(name), &mut entries)?;
    }
    if entries.len() >= MAX_FILES as usize {
        let why = format!("{} files at once; at most {}", entries.len(), MAX_FILES - 1);
        return Err(TransferError::file(&paths[0], why));
    }
    Ok(entries)
}

fn add(path: &Path, name: &Path, entries: &mut Vec<Entry>) -> Result<(), TransferError> {
    let failed = |error| TransferError::io(path.display().to_string())(error);
    let kind = fs::symlink_metadata(path).map_err(failed)?;
    if kind.is_dir() {
        let inside = fs::read_dir(path).map_err(failed)?.collect::<Result<Vec<_>, _>>();
        let mut inside: Vec<_> = inside.map_err(failed)?.iter().map(|entry| entry.file_name()).collect();
        inside.sort();
        return inside.iter().try_for_each(|file| add(&path.join(file), &name.join(file), entries));
    }
    if !kind.is_file() {
        return Err(TransferError::file(
            path,
            "neither a file nor a folder; links in folders are not followed",
        ));
    }
    let name = name.to_str().ok_or_else(|| TransferError::file(path, "its name is not UTF-8"))?.to_owned();
    entries.push(Entry { path: path.to_owned(), name, bytes: kind.len() });
    Ok(())
}
