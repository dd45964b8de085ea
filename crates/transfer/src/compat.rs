//! The protocol of libudt's sample programs sendfile and recvfile: the client sends a name, the server a size
//! and the bytes. Integers are in the host's byte order, in practice little-endian.
//!
//! It has no integrity check and no resumption, and one file a connection. Between two hosts with lfn, use
//! `lfn send`.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;

use crate::connections::each_connection;
use crate::place::{length, read_at, version, Directory, Place, CHANGED};
use crate::statistics::Tally;
use crate::stream::CHUNK_BYTES;
use crate::{ControlSpec, Listener, Plan, Progress, Served, Statistics, Stream, TransferError};

/// As in libudt's samples.
const MAX_NAME_BYTES: i32 = 1023;

/// Serves the files of a directory to recvfile.
///
/// # Errors
/// When the directory is not there, or the listener fails.
pub fn serve(
    listener: impl FnOnce() -> Result<Listener, TransferError>,
    directory: &Path,
    once: bool,
    stop: &Arc<AtomicBool>,
    tell: &mut dyn FnMut(Served),
) -> Result<(), TransferError> {
    let opened = Directory::open(directory).map_err(|error| TransferError::file(directory, error))?;
    let (directory, mut listener) = (Arc::new(opened), listener()?);
    let law = listener.control();
    each_connection(&mut listener, once, stop, tell, move |stream, _| give(stream, &directory, law.clone()))
}

fn give(stream: &mut Stream, directory: &Directory, law: ControlSpec) -> Result<Statistics, TransferError> {
    let bytes = i32::from_le_bytes(stream.read_array()?);
    if !(0..=MAX_NAME_BYTES).contains(&bytes) {
        return Err(TransferError::Protocol(format!(
            "a name of {bytes} bytes; allowed: 0 to {MAX_NAME_BYTES}"
        )));
    }
    let mut name = vec![0; bytes as usize];
    stream.read_exact(&mut name)?;
    let name = String::from_utf8_lossy(&name).into_owned();
    stream.activity().known();
    let file = directory.read(&name).and_then(|file| match length(&file) {
        Ok(bytes) => Ok((file, bytes)),
        Err(error) => Err(format!("{name}: {error}")),
    });
    let (file, bytes) = match file {
        Ok(found) => found,
        Err(why) => {
            stream.write(&(-1i64).to_le_bytes())?;
            stream.close()?;
            return Err(TransferError::Refused(why));
        }
    };
    let as_it_began = version(&file).map_err(TransferError::io(&*name))?;
    stream.write(&(bytes as i64).to_le_bytes())?;
    let mut tally = Tally { files: 1, total_bytes: bytes, ..Tally::default() };
    let mut buffer = vec![0; CHUNK_BYTES];
    while tally.done_bytes < bytes {
        let most = (bytes - tally.done_bytes).min(CHUNK_BYTES as u64) as usize;
        let got = read_at(&file, &mut buffer[..most], tally.done_bytes).map_err(TransferError::io(&*name))?;
        if got == 0 {
            return Err(TransferError::file(name.as_ref(), "it became shorter meanwhile"));
        }
        tally.done_bytes += got as u64;
        // The protocol has no hash: a client that does not get the end knows that the file is not whole.
        if tally.done_bytes >= bytes && version(&file).ok() != Some(as_it_began) {
            return Err(TransferError::file(name.as_ref(), CHANGED));
        }
        stream.write(&buffer[..got])?;
    }
    stream.close()?;
    Ok(tally.finish(stream, Some(law)))
}

/// Fetches a file from sendfile. `interrupted` is called often; true ends the transfer.
///
/// # Errors
/// When the server has no such file, or the connection or the disk fails.
pub fn fetch(
    peer: &str,
    remote: &str,
    local: &Path,
    overwrite: bool,
    plan: &Plan,
    interrupted: impl FnMut() -> bool + Send + 'static,
    tell: &mut dyn FnMut(&Progress),
) -> Result<Statistics, TransferError> {
    let target = Target::new(local, overwrite)?;
    let name = remote.as_bytes();
    if name.len() > MAX_NAME_BYTES as usize {
        return Err(TransferError::file(
            remote.as_ref(),
            format!("a name of {} bytes; allowed: at most {MAX_NAME_BYTES}", name.len()),
        ));
    }
    let mut stream = Stream::connect(peer, plan, interrupted)?;
    stream.write(&(name.len() as i32).to_le_bytes())?;
    stream.flush()?;
    stream.write(name)?;
    stream.flush()?;
    let bytes = i64::from_le_bytes(stream.read_array()?);
    let bytes =
        u64::try_from(bytes).map_err(|_| TransferError::Refused(format!("{remote}: cannot be opened")))?;
    let failed = || TransferError::io(local.display().to_string());
    let mut file = target.begin().map_err(failed())?;
    let mut tally = Tally { files: 1, total_bytes: bytes, ..Tally::default() };
    let mut teller = crate::statistics::Teller::new(tell);
    teller.begin(&stream, &tally);
    while tally.done_bytes < bytes {
        let got = stream.read()?;
        let take = (got.len() as u64).min(bytes - tally.done_bytes) as usize;
        if take == 0 {
            let why = format!("an end after {} of {bytes} bytes", tally.done_bytes);
            return Err(TransferError::Protocol(why));
        }
        file.write_all(&got[..take]).map_err(failed())?;
        stream.consume(take)?;
        tally.done_bytes += take as u64;
        teller.tell(&stream, &tally);
    }
    target.finish(&file, overwrite).map_err(failed())?;
    let statistics = tally.finish(&stream, None);
    // The file is whole.
    stream.close_complete()?;
    Ok(statistics)
}

/// Destination of a fetched file: a name, at which it appears when complete, or a device.
enum Target {
    Place(Place),
    Device(File),
}

impl Target {
    fn new(local: &Path, overwrite: bool) -> Result<Target, TransferError> {
        let failed = |error: std::io::Error| TransferError::file(local, error);
        if let Ok(metadata) = local.metadata() {
            if !metadata.is_file() {
                return Ok(Target::Device(File::options().write(true).open(local).map_err(failed)?));
            }
            if !overwrite {
                return Err(TransferError::file(local, "it is there; --overwrite replaces it"));
            }
        }
        let name = local.file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| TransferError::file(local, "it has no name in UTF-8"))?;
        let folder = local.parent().filter(|folder| !folder.as_os_str().is_empty());
        let directory = Directory::open_to_write(folder.unwrap_or(Path::new(".")))?;
        Ok(Target::Place(directory.place(name).map_err(|why| TransferError::file(local, why))?))
    }

    fn begin(&self) -> std::io::Result<File> {
        match self {
            Target::Device(file) => file.try_clone(),
            Target::Place(place) => {
                let file = place.part()?;
                file.set_len(0)?;
                Ok(file)
            }
        }
    }

    fn finish(&self, file: &File, overwrite: bool) -> std::io::Result<()> {
        match self {
            Target::Device(_) => Ok(()),
            Target::Place(place) => {
                file.sync_all()?;
                place.finish(overwrite)
            }
        }
    }
}
