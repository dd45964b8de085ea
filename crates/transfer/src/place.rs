//! Where files are put: nowhere outside one directory, whatever names and links say.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{fstat, mkdirat, open, openat, renameat, unlinkat, AtFlags, FileType, Mode, OFlags, CWD};
use rustix::io::Errno;

const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// A name may have so many parts.
const MAX_PARTS: usize = 64;
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

/// The parts of a name that leads down only; else why not.
fn parts(name: &str) -> Result<Vec<&str>, String> {
    let parts: Vec<&str> = name.split('/').collect();
    let bad = |part: &&&str| {
        part.is_empty()
            || **part == "."
            || **part == ".."
            || part.len() > 255
            || part.contains('\0')
            || (part.starts_with(PART_PREFIX) && part.ends_with(PART_SUFFIX))
    };
    match parts.iter().find(bad) {
        Some(part) => Err(format!("the name {name:?} has a part {part:?}, which no file here may have")),
        None if parts.len() > MAX_PARTS => {
            Err(format!("a name of {} parts; at most {MAX_PARTS}", parts.len()))
        }
        None => Ok(parts),
    }
}

impl Directory {
    /// Opens a directory, which must be there.
    pub fn open(path: &Path) -> io::Result<Directory> {
        Ok(Directory(openat(CWD, path, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?))
    }

    /// The place of a name. Folders on the way are made; a link on the way is an error.
    pub fn place(&self, name: &str) -> Result<Place, String> {
        let failed = |error: Errno| format!("{name}: {}", io::Error::from(error));
        let mut parts = parts(name)?;
        let last = parts.pop().unwrap_or_default();
        let mut folder = self.0.try_clone().map_err(|error| format!("{name}: {error}"))?;
        for part in parts {
            match mkdirat(&folder, part, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(failed(error)),
            }
            folder = openat(&folder, part, FOLDER, Mode::empty()).map_err(failed)?;
        }
        let hash = blake3::hash(last.as_bytes()).to_hex();
        let part = format!("{PART_PREFIX}{}{PART_SUFFIX}", &hash[..16]);
        Ok(Place { folder, name: last.to_owned(), part })
    }

    /// Opens a file to read.
    pub fn read(&self, name: &str) -> Result<File, String> {
        self.place(name)?.whole().ok_or_else(|| format!("{name}: no such file"))
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

    /// The file, if it is there.
    pub fn whole(&self) -> Option<File> {
        self.regular(&self.name, OFlags::RDONLY).ok()
    }

    /// What is there of it, if anything.
    pub fn part(&self) -> Option<File> {
        self.regular(&self.part, OFlags::RDWR).ok()
    }

    /// Begins it anew.
    pub fn begin(&self) -> io::Result<File> {
        Ok(self.regular(&self.part, OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC)?)
    }

    /// It is whole.
    pub fn finish(&self) -> io::Result<()> {
        Ok(renameat(&self.folder, &self.part, &self.folder, &self.name)?)
    }

    /// It is worth nothing.
    pub fn discard(&self) -> io::Result<()> {
        Ok(unlinkat(&self.folder, &self.part, AtFlags::empty())?)
    }
}

/// Opens a file to send; a link at the end of the path is followed only for what the user named.
pub(crate) fn open_to_send(path: &Path) -> io::Result<File> {
    Ok(open(path, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK, Mode::empty())?.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_down_only() {
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
        ] {
            assert!(parts(name).is_err(), "{name:?}");
        }
        assert!(parts(&"a/".repeat(70)).is_err());
        assert!(parts(&"a".repeat(256)).is_err());
        for name in ["a", "a/b/c.txt", "...", "a b", "ä", ".lfn", "x.part"] {
            assert!(parts(name).is_ok(), "{name:?}");
        }
    }
}
