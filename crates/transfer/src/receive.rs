//! The receiving side: `lfn recv`.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;

use crate::connections::{each_connection, Served};
use crate::hashing::{FileHash, BLOCK_BYTES};
use crate::list::{Expected, List, Shared};
use crate::place::{Directory, Place, There};
use crate::statistics::{Tally, Teller};
use crate::wire::{
    BUSY, CLAIM, DATA, DONE, END, HOLE, MAGIC, NO_FILE, OTHER, PART, READY, REFUSED, SAME, WHOLE,
};
use crate::{Listener, Progress, Statistics, Stream, TransferError};

/// Names examined between two steps of the connection.
const LOOKS: usize = 256;

/// Settings of a receiver.
#[derive(Clone, Debug)]
pub struct Serving<'a> {
    /// Directory for the files.
    pub directory: &'a Path,
    /// End after the first transfer.
    pub once: bool,
    /// Replace existing files.
    pub overwrite: bool,
    /// Set by the caller to end; set by [`serve`] after the transfer of [`Serving::once`].
    pub stop: Arc<AtomicBool>,
}

/// Receives files from every client, each connection in its own thread, until told to stop. `listener` is
/// called once the directory is known to be writable.
///
/// # Errors
/// If the directory is missing or not writable, or the listener fails.
pub fn serve(
    listener: impl FnOnce() -> Result<Listener, TransferError>,
    serving: &Serving<'_>,
    tell: &mut dyn FnMut(Served),
) -> Result<(), TransferError> {
    let directory = Directory::open_to_write(serving.directory)?;
    let target = Arc::new(Target { directory, overwrite: serving.overwrite, shared: Shared::default() });
    each_connection(&mut listener()?, serving.once, &serving.stop, tell, move |stream, tell| {
        receive(stream, &target, tell)
    })
}

/// Directory for the files, and state that all connections share.
struct Target {
    directory: Directory,
    overwrite: bool,
    shared: Shared,
}

/// Bytes of existing files that equal the sender's, by the file's index.
type Agreed = BTreeMap<u32, u64>;

fn receive(
    stream: &mut Stream,
    target: &Target,
    tell: &mut dyn FnMut(&Progress),
) -> Result<Statistics, TransferError> {
    let mut tally = Tally::default();
    let result = take_files(stream, target, &mut tally, &mut Teller::new(tell));
    match &result {
        Ok(differs) => {
            stream.write(&[DONE])?;
            stream.write(&differs.to_le_bytes())?;
        }
        // The connection cannot carry a last message.
        Err(
            TransferError::Connection { .. }
            | TransferError::Key { .. }
            | TransferError::Interrupted
            | TransferError::Taken
            | TransferError::Idle,
        ) => {}
        Err(error) => {
            let text = match error {
                TransferError::Refused(why) => why.clone(),
                other => other.to_string(),
            };
            stream.write(&[REFUSED])?;
            stream.write_text(&text)?;
            // The reason of a refusal is more useful than the way the connection ended.
            let _ = stream.close();
        }
    }
    let differs = result?;
    let statistics = tally.finish(stream, None);
    // All files have their names.
    stream.close_complete()?;
    match differs {
        0 => Ok(statistics),
        count => Err(TransferError::Differs(count as usize)),
    }
}

fn take_files(
    stream: &mut Stream,
    target: &Target,
    tally: &mut Tally,
    teller: &mut Teller<'_>,
) -> Result<u32, TransferError> {
    if stream.read_array()? != MAGIC {
        return Err(TransferError::Protocol("something else than this version of lfn send does".into()));
    }
    let list = List::read(stream, &target.shared)?;
    stream.activity().known();
    tally.files = list.files.len() as u64;
    tally.total_bytes = list.files.iter().map(|file| file.bytes).fold(0, u64::saturating_add);
    teller.begin(stream, tally);
    let there = look(stream, target, &list.files)?;
    let agreed = agree(stream, target, &list.files, &there)?;
    let is_whole = |index| there.get(&index).is_some_and(|(whole, _)| *whole) && agreed.contains_key(&index);
    let (mut differs, mut sent, mut next) = (0, 0u64, 0);
    loop {
        let index = stream.read_u32()?;
        // A file that is not sent must exist here with the sender's contents.
        let until = if index == NO_FILE { list.files.len() as u32 } else { index };
        if let Some(missing) = (next..until).find(|index| !is_whole(*index)) {
            return Err(TransferError::Protocol(format!("the end before file {missing}")));
        }
        if index == NO_FILE {
            break;
        }
        let offset = stream.read_u64()?;
        let wrong = || TransferError::Protocol(format!("file {index} from byte {offset}"));
        let file = list.files.get(index as usize).ok_or_else(wrong)?;
        if index < next || is_whole(index) || offset > 0 && agreed.get(&index) != Some(&offset) {
            return Err(wrong());
        }
        next = index + 1;
        sent = sent.saturating_add(file.bytes - offset);
        tally.resumed_bytes = tally.resumed_bytes.saturating_add(offset);
        tally.done_bytes = tally.done_bytes.saturating_add(offset);
        differs += u32::from(!take_file(stream, target, file, offset, tally, teller)?);
    }
    tally.resumed_bytes = tally.total_bytes.saturating_sub(sent);
    tally.done_bytes = tally.total_bytes;
    Ok(differs)
}

/// Tells the sender which files exist, and nothing about their contents. Creates nothing. Returns, by index,
/// whether the file is complete, and its bytes.
fn look(
    stream: &mut Stream,
    target: &Target,
    files: &[Expected],
) -> Result<BTreeMap<u32, (bool, u64)>, TransferError> {
    let mut found = BTreeMap::new();
    for (index, Expected { name, bytes }) in files.iter().enumerate() {
        if index % LOOKS == 0 {
            stream.working()?;
        }
        let refused = |why: &str| Err(TransferError::Refused(format!("{name}: {why}")));
        let Some(place) = target.directory.look(name).map_err(TransferError::Refused)? else { continue };
        match place.there().map_err(TransferError::io(&**name))? {
            There::File(there) if there == *bytes => drop(found.insert(index as u32, (true, there))),
            There::File(_) if !target.overwrite => {
                return refused(
                    "a file of this name is there, of another size; lfn recv --overwrite replaces it",
                )
            }
            There::Other => return refused("something of this name is there, and is no file"),
            There::File(_) | There::Nothing => {
                // Whole blocks are kept; a shorter rest is sent again.
                let part = place.part_bytes().min(*bytes);
                let part = part - part % BLOCK_BYTES;
                if part > 0 {
                    found.insert(index as u32, (false, part));
                }
            }
        }
    }
    stream.write(&[READY])?;
    for (index, (whole, bytes)) in &found {
        stream.write(&[if *whole { WHOLE } else { PART }])?;
        stream.write(&index.to_le_bytes())?;
        if !whole {
            stream.write(&bytes.to_le_bytes())?;
        }
    }
    stream.write(&[END])?;
    stream.flush()?;
    Ok(found)
}

/// Compares the sender's claims with the existing files, each file once.
fn agree(
    stream: &mut Stream,
    target: &Target,
    files: &[Expected],
    there: &BTreeMap<u32, (bool, u64)>,
) -> Result<Agreed, TransferError> {
    let mut agreed = Agreed::new();
    stream.busy_word(Some(BUSY));
    for (&index, &(whole, most)) in there {
        match stream.word()? {
            CLAIM => {}
            got => return Err(TransferError::Protocol(format!("word {got} in place of a claim"))),
        }
        let (claimed, bytes, hash) = (stream.read_u32()?, stream.read_u64()?, stream.read_array()?);
        if claimed != index || bytes > most {
            return Err(TransferError::Protocol(format!("a claim to {bytes} bytes of file {claimed}")));
        }
        let name = &*files[index as usize].name;
        let place = target.directory.look(name).map_err(TransferError::Refused)?;
        let file = match place {
            Some(place) if whole => place.whole().ok(),
            Some(place) => place.part().ok(),
            None => None,
        };
        let mut found = FileHash::default();
        let same = match file {
            Some(file) if file.metadata().is_ok_and(|there| there.len() >= bytes) => {
                found.take_file((&file, name), 0, bytes, Some(&target.shared.turn), stream)?;
                found.of(bytes) == hash
            }
            _ => false,
        };
        if same {
            agreed.insert(index, bytes);
        } else if whole && !target.overwrite {
            let why = format!(
                "{name}: a file of this name is there, with other contents; lfn recv --overwrite replaces it"
            );
            return Err(TransferError::Refused(why));
        }
        stream.write(&[if same { SAME } else { OTHER }])?;
    }
    match stream.word()? {
        END => {}
        got => return Err(TransferError::Protocol(format!("word {got} in place of the end of claims"))),
    }
    stream.flush()?;
    Ok(agreed)
}

/// Receives the rest of a file, and renames it if the disk's contents equal the sender's.
fn take_file(
    stream: &mut Stream,
    target: &Target,
    file: &Expected,
    offset: u64,
    tally: &mut Tally,
    teller: &mut Teller<'_>,
) -> Result<bool, TransferError> {
    let name = &*file.name;
    let failed = || TransferError::io(name);
    let place = target.directory.place(name).map_err(TransferError::Refused)?;
    let part = place.part().map_err(failed())?;
    if part.metadata().map_err(failed())?.len() < offset {
        return Err(TransferError::Refused(format!("{name}: what was there of it is gone")));
    }
    // Bytes beyond the offset are from an earlier attempt.
    part.set_len(offset).map_err(failed())?;
    let hash = take_extents(stream, file, &part, offset, tally, teller)?;
    part.set_len(file.bytes).map_err(failed())?;
    part.sync_all().map_err(failed())?;
    let mut found = FileHash::default();
    found.take_file((&part, name), 0, file.bytes, None, stream)?;
    if found.of(file.bytes) != hash {
        place.discard().map_err(failed())?;
        return Ok(false);
    }
    put(&place, name, target.overwrite)?;
    Ok(true)
}

fn put(place: &Place, name: &str, overwrite: bool) -> Result<(), TransferError> {
    match place.finish(overwrite) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            // Another transfer or program made the file first; these bytes are discarded.
            let _ = place.discard();
            Err(TransferError::Refused(format!("{name}: a file of this name came meanwhile")))
        }
        done => done.map_err(TransferError::io(name)),
    }
}

/// Writes the received data, and returns the hash that the sender sent.
fn take_extents(
    stream: &mut Stream,
    file: &Expected,
    part: &File,
    mut at: u64,
    tally: &mut Tally,
    teller: &mut Teller<'_>,
) -> Result<[u8; 32], TransferError> {
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
                    stream.consume(take)?;
                    at += take as u64;
                    left -= take as u64;
                    tally.done_bytes = tally.done_bytes.saturating_add(take as u64);
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
                tally.done_bytes = tally.done_bytes.saturating_add(bytes);
            }
            END if at == file.bytes => return stream.read_array(),
            END => {
                return Err(TransferError::Protocol(format!("{at} of the {} bytes of {name}", file.bytes)))
            }
            other => return Err(TransferError::Protocol(format!("extent {other}"))),
        }
    }
}
