//! The sending side of `lfn send`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::ops::Range;
use std::path::{Path, PathBuf};

use rustix::fs::{seek, SeekFrom};

use crate::hashing::{next_data, FileHash, BLOCK_BYTES};
use crate::place::{length, open_without_waiting, parts, read_at, version, Version, CHANGED};
use crate::statistics::{Tally, Teller};
use crate::stream::CHUNK_BYTES;
use crate::wire::{
    BUSY, CLAIM, DATA, DONE, END, HOLE, MAGIC, MAX_FILES, NO_FILE, OTHER, PART, READY, SAME, WHOLE,
};
use crate::{Plan, Progress, Statistics, Stream, TransferError};

/// Files, receiver and plan of a transfer.
#[derive(Clone, Debug)]
pub struct Sending<'a> {
    /// Files, and folders with all of their files.
    pub paths: &'a [PathBuf],
    /// The receiver, for example `127.0.0.1:9000`.
    pub to: &'a str,
    /// Path, packet sizes and congestion control.
    pub plan: Plan,
}

struct Entry {
    path: PathBuf,
    name: String,
    bytes: u64,
    /// The file at the beginning of the transfer: if it is another at the end, the bytes sent are a mixture.
    version: Version,
}

impl Entry {
    fn check(&self, file: &File) -> Result<(), TransferError> {
        match version(file) {
            Ok(now) if now == self.version => Ok(()),
            Ok(_) => Err(TransferError::file(&self.path, CHANGED)),
            Err(error) => Err(TransferError::file(&self.path, error)),
        }
    }
}

/// Sends files, and waits until the receiver has checked them. `tell` gets the progress. `interrupted` is
/// called often; true ends the transfer. The same call resumes an interrupted transfer.
///
/// # Errors
/// If a file cannot be read, the connection ends, or the receiver refuses or finds a difference.
pub fn send(
    sending: &Sending<'_>,
    interrupted: impl FnMut() -> bool + Send + 'static,
    tell: &mut dyn FnMut(&Progress),
) -> Result<Statistics, TransferError> {
    let entries = entries(sending.paths)?;
    let mut stream = Stream::connect(sending.to, &sending.plan, interrupted)?;
    let mut tally = Tally {
        files: entries.len() as u64,
        total_bytes: entries.iter().map(|entry| entry.bytes).sum(),
        ..Tally::default()
    };
    let mut teller = Teller::new(tell);
    teller.begin(&stream, &tally);
    let sent = transfer(&mut stream, &entries, &mut tally, &mut teller);
    // The receiver's last message explains why the connection ended.
    let differs = match sent {
        Err(TransferError::Connection { .. }) => last_word(&mut stream).and(sent)?,
        sent => sent?,
    };
    let statistics = tally.finish(&stream, Some(sending.plan.control.clone()));
    // The receiver confirmed all files.
    stream.close_complete()?;
    match differs {
        0 => Ok(statistics),
        count => Err(TransferError::Differs(count as usize)),
    }
}

/// Reason of the receiver's refusal, if it arrived before the connection ended.
fn last_word(stream: &mut Stream) -> Result<(), TransferError> {
    loop {
        match stream.word() {
            Ok(SAME | OTHER) => {}
            Err(TransferError::Refused(why)) => return Err(TransferError::Refused(why)),
            _ => return Ok(()),
        }
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
    let hashes = claim(stream, entries)?;
    for (index, entry) in entries.iter().enumerate() {
        let (offset, mut hash) = match hashes.get(&(index as u32)) {
            Some(Claim { same: true, bytes, hash, .. }) => (*bytes, hash.clone()),
            _ => (0, FileHash::default()),
        };
        tally.done_bytes += offset;
        tally.resumed_bytes += offset;
        let whole = hashes.get(&(index as u32)).is_some_and(|claim| claim.same && claim.whole);
        if !whole {
            let file = open(entry)?;
            stream.write(&(index as u32).to_le_bytes())?;
            stream.write(&offset.to_le_bytes())?;
            send_file(stream, entry, &file, offset, &mut hash, tally, teller)?;
        }
        teller.tell(stream, tally);
    }
    stream.write(&NO_FILE.to_le_bytes())?;
    stream.flush()?;
    stream.expect(DONE)?;
    stream.read_u32()
}

/// The receiver's part of a file, and whether its contents are the sender's.
struct Claim {
    whole: bool,
    bytes: u64,
    hash: FileHash,
    same: bool,
}

/// Receives the list of existing files, and answers with the claims.
fn claim(stream: &mut Stream, entries: &[Entry]) -> Result<BTreeMap<u32, Claim>, TransferError> {
    let mut claims = BTreeMap::new();
    loop {
        let word = stream.word()?;
        if word == END {
            break;
        }
        let index = stream.read_u32()?;
        let wrong =
            || TransferError::Protocol(format!("word {word} about file {index} of {}", entries.len()));
        let entry = entries.get(index as usize).ok_or_else(wrong)?;
        let bytes = match word {
            WHOLE => entry.bytes,
            PART => stream.read_u64()?,
            _ => return Err(wrong()),
        };
        let claim = Claim { whole: word == WHOLE, bytes, hash: FileHash::default(), same: false };
        if bytes > entry.bytes
            || word == PART && bytes % BLOCK_BYTES != 0
            || claims.insert(index, claim).is_some()
        {
            return Err(wrong());
        }
    }
    stream.busy_word(Some(BUSY));
    for (index, claim) in &mut claims {
        let entry = &entries[*index as usize];
        let file = open(entry)?;
        claim.hash.take_file((&file, &entry.name), 0, claim.bytes, None, stream)?;
        entry.check(&file)?;
        stream.write(&[CLAIM])?;
        stream.write(&index.to_le_bytes())?;
        stream.write(&claim.bytes.to_le_bytes())?;
        stream.write(&claim.hash.of(claim.bytes))?;
    }
    stream.busy_word(None);
    stream.write(&[END])?;
    stream.flush()?;
    for claim in claims.values_mut() {
        claim.same = match stream.word()? {
            SAME => true,
            OTHER => false,
            got => return Err(TransferError::Protocol(format!("answer {got} to a claim"))),
        };
    }
    Ok(claims)
}

fn open(entry: &Entry) -> Result<File, TransferError> {
    open_without_waiting(&entry.path).map_err(|error| TransferError::file(&entry.path, error))
}

fn send_file(
    stream: &mut Stream,
    entry: &Entry,
    file: &File,
    mut at: u64,
    hash: &mut FileHash,
    tally: &mut Tally,
    teller: &mut Teller<'_>,
) -> Result<(), TransferError> {
    let shorter = || TransferError::file(&entry.path, "it became shorter meanwhile");
    let failed = |error| TransferError::file(&entry.path, error);
    let mut buffer = vec![0; CHUNK_BYTES];
    while at < entry.bytes {
        let data = next_data(file, at, entry.bytes).map_err(failed)?;
        if data > at {
            write_hole(stream, data - at)?;
            tally.done_bytes += data - at;
            at = data;
            continue;
        }
        let end = match seek(file, SeekFrom::Hole(at)) {
            // The block may begin in a hole before its data.
            Ok(hole) => hole.max(at + 1).next_multiple_of(BLOCK_BYTES).min(entry.bytes),
            Err(_) => entry.bytes,
        };
        while at < end {
            let most = (end - at).min(CHUNK_BYTES as u64) as usize;
            let got = read_at(file, &mut buffer[..most], at).map_err(failed)?;
            if got < most {
                return Err(shorter());
            }
            hash.take(at, &buffer[..got]);
            let data = data_pages(&buffer[..got]);
            write_hole(stream, data.start as u64)?;
            if !data.is_empty() {
                stream.write(&[DATA])?;
                stream.write(&(data.len() as u32).to_le_bytes())?;
                stream.write(&buffer[data.clone()])?;
            }
            write_hole(stream, (got - data.end) as u64)?;
            at += got as u64;
            tally.done_bytes += got as u64;
            teller.tell(stream, tally);
        }
    }
    entry.check(file)?;
    stream.write(&[END])?;
    stream.write(&hash.of(entry.bytes))
}

/// Range from the first to the last page that is not all zeros; the rest is or becomes a hole.
fn data_pages(bytes: &[u8]) -> Range<usize> {
    const PAGE: usize = 4096;
    let data = |page: &[u8]| page.iter().any(|&byte| byte != 0);
    let Some(first) = bytes.chunks(PAGE).position(data) else { return bytes.len()..bytes.len() };
    let last = bytes.chunks(PAGE).rposition(data).unwrap_or(first);
    first * PAGE..((last + 1) * PAGE).min(bytes.len())
}

fn write_hole(stream: &mut Stream, bytes: u64) -> Result<(), TransferError> {
    if bytes == 0 {
        return Ok(());
    }
    stream.write(&[HOLE])?;
    stream.write(&bytes.to_le_bytes())
}

/// Every file under `paths`, with names relative to the folder of each path.
fn entries(paths: &[PathBuf]) -> Result<Vec<Entry>, TransferError> {
    let mut entries = Vec::new();
    for path in paths {
        let whole = path.canonicalize().map_err(|error| TransferError::file(path, error))?;
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
    let failed = |error: std::io::Error| TransferError::file(path, error);
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
    parts(&name).map_err(|why| TransferError::file(path, why))?;
    // Unreadable files are found before anything is sent.
    let file = open_without_waiting(path).map_err(failed)?;
    // Its version first: a length that is read from a later one is found out.
    let (version, bytes) = (version(&file).map_err(failed)?, length(&file).map_err(failed)?);
    entries.push(Entry { path: path.to_owned(), name, bytes, version });
    Ok(())
}
