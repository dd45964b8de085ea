//! Where files are put: nowhere outside one directory, whatever names and links say, and whole.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{
    accessat, flock, fstat, fsync, linkat, mkdirat, open, openat, renameat, renameat_with, statat, unlinkat,
    Access, AtFlags, FileType, FlockOperation, Mode, OFlags, RenameFlags, CWD,
};
use rustix::io::Errno;

use crate::TransferError;

const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Limits of a name: parts, and bytes.
const MAX_PARTS: usize = 32;
const MAX_BYTES: usize = 4000;
/// Files that are not whole yet.
const PART_PREFIX: &str = ".lfn-";
const PART_SUFFIX: &str = ".part";

/// A directory that is the root of all names.
pub(crate) struct Directory(OwnedFd);

/// A file to be, in the folder where it will stand.
pub(crate) struct Place {
    folder: OwnedFd,
    name: String,
    part: String,
}

/// Kind of the existing entry under a name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum There {
    Nothing,
    /// A regular file with its size in bytes.
    File(u64),
    /// A folder, a link, a device.
    Other,
}

/// Reason to refuse a part of a name: a terminal, a shell or another operating system would misread it.
fn oddity(part: &str) -> Option<&'static str> {
    let hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    let stem = part.split('.').next().unwrap_or_default().trim_end().to_ascii_uppercase();
    let numbered =
        |device: &str| stem.strip_prefix(device).is_some_and(|rest| matches!(rest.as_bytes(), [b'1'..=b'9']));
    let drive = matches!(part.as_bytes(), [b'a'..=b'z' | b'A'..=b'Z', b':', ..]);
    match part {
        "" => Some("is empty"),
        "." | ".." => Some("leads elsewhere"),
        _ if part.len() > 255 => Some("has more than 255 bytes"),
        _ if part.chars().any(hidden) => Some("has control characters"),
        _ if part.starts_with(PART_PREFIX) && part.ends_with(PART_SUFFIX) => {
            Some("is kept for files that are not whole")
        }
        _ if part.contains('\\') => Some("has a backslash, which separates folders on Windows"),
        _ if drive => Some("begins with a drive's letter of Windows"),
        _ if part.ends_with(['.', ' ']) => Some("ends with a dot or a space, which Windows drops"),
        _ if matches!(&*stem, "CON" | "PRN" | "AUX" | "NUL") || numbered("COM") || numbered("LPT") => {
            Some("is a device on Windows")
        }
        _ => None,
    }
}

/// The parts of a name that leads down only; else why not.
pub(crate) fn parts(name: &str) -> Result<Vec<&str>, String> {
    let parts: Vec<&str> = name.split('/').collect();
    if name.len() > MAX_BYTES {
        return Err(format!("a name of {} bytes; at most {MAX_BYTES}", name.len()));
    }
    if parts.len() > MAX_PARTS {
        return Err(format!("a name of {} parts; at most {MAX_PARTS}", parts.len()));
    }
    match parts.iter().find_map(|part| Some((part, oddity(part)?))) {
        Some((part, why)) => Err(format!("the name {name:?}: its part {part:?} {why}")),
        None => Ok(parts),
    }
}

impl Directory {
    /// Opens a directory, which must be there.
    pub fn open(path: &Path) -> io::Result<Directory> {
        Ok(Directory(openat(CWD, path, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?))
    }

    /// Opens a directory in which files will be made.
    pub fn open_to_write(path: &Path) -> Result<Directory, TransferError> {
        let failed = |error: io::Error| TransferError::file(path, error);
        let directory = Directory::open(path).map_err(failed)?;
        accessat(&directory.0, ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::empty())
            .map_err(|error| failed(error.into()))?;
        Ok(directory)
    }

    /// The place of a name, if its folder is there or `make` makes it. A link on the way is an error.
    fn find(&self, name: &str, make: bool) -> Result<Option<Place>, String> {
        let failed = |error: io::Error| format!("{name}: {error}");
        let mut parts = parts(name)?;
        let last = parts.pop().unwrap_or_default();
        let mut folder = self.0.try_clone().map_err(failed)?;
        for part in parts {
            if make {
                match mkdirat(&folder, part, Mode::from_raw_mode(0o755)) {
                    Ok(()) => fsync(&folder).map_err(|error| failed(error.into()))?,
                    Err(Errno::EXIST) => {}
                    Err(error) => return Err(failed(error.into())),
                }
            }
            folder = match openat(&folder, part, FOLDER, Mode::empty()) {
                Ok(folder) => folder,
                Err(Errno::NOENT) => return Ok(None),
                Err(error) => return Err(failed(error.into())),
            };
        }
        let hash = blake3::hash(last.as_bytes()).to_hex();
        let part = format!("{PART_PREFIX}{}{PART_SUFFIX}", &hash[..16]);
        Ok(Some(Place { folder, name: last.to_owned(), part }))
    }

    /// The place of a name, without making anything; `None`: its folder is not there.
    pub fn look(&self, name: &str) -> Result<Option<Place>, String> {
        self.find(name, false)
    }

    /// The place of a name, whose folders are made.
    pub fn place(&self, name: &str) -> Result<Place, String> {
        self.find(name, true)?.ok_or_else(|| format!("{name}: its folder is gone"))
    }

    /// Opens a file to read.
    pub fn read(&self, name: &str) -> Result<File, String> {
        let file = self.look(name)?.and_then(|place| place.regular(&place.name, OFlags::RDONLY).ok());
        file.ok_or_else(|| format!("{name}: no such file"))
    }
}

impl Place {
    fn regular(&self, name: &str, flags: OFlags) -> Result<File, Errno> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = openat(&self.folder, name, flags, Mode::from_raw_mode(0o644))?;
        match FileType::from_raw_mode(fstat(&file)?.st_mode) {
            FileType::RegularFile => Ok(file.into()),
            _ => Err(Errno::INVAL),
        }
    }

    /// Kind of the existing entry under the name.
    pub fn there(&self) -> io::Result<There> {
        match statat(&self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => {
                Ok(There::File(stat.st_size as u64))
            }
            Ok(_) => Ok(There::Other),
            Err(Errno::NOENT) => Ok(There::Nothing),
            Err(error) => Err(error.into()),
        }
    }

    /// The file under the name.
    pub fn whole(&self) -> io::Result<File> {
        Ok(self.regular(&self.name, OFlags::RDONLY)?)
    }

    /// Bytes of what is there in part, if anything.
    pub fn part_bytes(&self) -> u64 {
        self.regular(&self.part, OFlags::RDONLY)
            .ok()
            .and_then(|file| file.metadata().ok())
            .map_or(0, |m| m.len())
    }

    /// Opens or creates the partial file, and locks it.
    pub fn part(&self) -> io::Result<File> {
        loop {
            let file = self.regular(&self.part, OFlags::RDWR | OFlags::CREATE)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => {
                    return Err(io::Error::other("another transfer of this name is under way"));
                }
                Err(error) => return Err(error.into()),
            }
            // Its owner may have finished or removed it between the two calls.
            let mine = fstat(&file)?;
            match statat(&self.folder, &self.part, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) if (stat.st_dev, stat.st_ino) == (mine.st_dev, mine.st_ino) => return Ok(file),
                Ok(_) | Err(Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// It is whole: it stands under its name, and stays there if the machine fails.
    pub fn finish(&self, overwrite: bool) -> io::Result<()> {
        let (folder, part, name) = (&self.folder, &*self.part, &*self.name);
        if overwrite {
            renameat(folder, part, folder, name)?;
        } else {
            match renameat_with(folder, part, folder, name, RenameFlags::NOREPLACE) {
                // Not every file system can: a second name fails as well if there is a first.
                Err(Errno::INVAL | Errno::NOSYS) => {
                    linkat(folder, part, folder, name, AtFlags::empty())?;
                    unlinkat(folder, part, AtFlags::empty())?;
                }
                done => done?,
            }
        }
        Ok(fsync(folder)?)
    }

    /// It is worth nothing.
    pub fn discard(&self) -> io::Result<()> {
        Ok(unlinkat(&self.folder, &self.part, AtFlags::empty())?)
    }
}

/// Opens what the user named, to read. A FIFO without a writer is opened too; the caller asks whether it is a file.
pub(crate) fn open_without_waiting(path: &Path) -> io::Result<File> {
    Ok(open(path, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK, Mode::empty())?.into())
}

/// Reads at an offset without moving the file's own; short only at its end.
pub(crate) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match std::os::unix::fs::FileExt::read_at(file, &mut buffer[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(bytes) => done += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// Reason to end a transfer of a file whose [`Version`] is another than at its beginning.
pub(crate) const CHANGED: &str = "it was changed meanwhile";

/// File, size, and the times of the last changes of contents and of the entry: one that is written is another.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Version([i64; 7]);

pub(crate) fn version(file: &File) -> io::Result<Version> {
    let seen = file.metadata()?;
    let (device, inode, bytes) = (seen.dev() as i64, seen.ino() as i64, seen.size() as i64);
    let [modified, changed] = [[seen.mtime(), seen.mtime_nsec()], [seen.ctime(), seen.ctime_nsec()]];
    Ok(Version([device, inode, bytes, modified[0], modified[1], changed[0], changed[1]]))
}

/// Length of a file to be sent. Files of /proc say 0 and have contents.
pub(crate) fn length(file: &File) -> io::Result<u64> {
    let bytes = file.metadata()?.len();
    if bytes == 0 && read_at(file, &mut [0], 0)? > 0 {
        return Err(io::Error::other(
            "its size is 0, but it has contents, as files in /proc have; send a copy of it",
        ));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_down_only_and_are_what_they_look_like() {
        for name in [
            "",
            "/",
            "/etc/passwd",
            "..",
            "a/../b",
            "a//b",
            "./a",
            "a/",
            "a\0b",
            ".lfn-0123.part",
            "a/.lfn-.part/b",
            "a\nb",
            "\x1b[2J",
            "a\u{9b}b",
            "a\u{202e}b",
            "a\\b",
            "C:b",
            "c:",
            "con",
            "nul.txt",
            "x/COM1.dat",
            "lpt9",
            "a.",
            "a ",
            "...",
            "\u{7f}",
        ] {
            assert!(parts(name).is_err(), "{name:?}");
        }
        assert!(parts(&format!("{}a", "a/".repeat(32))).is_err());
        assert!(parts(&"a".repeat(256)).is_err());
        assert!(parts(&vec!["a".repeat(250); 17].join("/")).is_err());
        for name in
            ["a", "a/b/c.txt", "a b", "ä", ".lfn", "x.part", "12:30.dat", "COM", "com10", "console", "-rf"]
        {
            assert!(parts(name).is_ok(), "{name:?}");
        }
    }
}
