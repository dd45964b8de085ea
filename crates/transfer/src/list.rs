//! List of files that a sender announces, with limits for one peer and for all peers together.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lfn_units::Time;

use crate::place::parts;
use crate::wire::{MAX_FILES, MAX_NAME_BYTES};
use crate::{Stream, TransferError};

/// Memory limit of the lists of all peers together, in bytes.
const MAX_MEMORY_BYTES: u64 = 256 << 20;
/// Largest memory of a file in a list without its name, in bytes: its entries here and in the set of names,
/// overhead of the allocator, spare room of vectors, and its folders while they are counted.
const FILE_BYTES: u64 = 192;
/// Largest number of folders of a list: a constant, and a number for each file.
const FREE_FOLDERS: usize = 1024;
const FOLDERS_PER_FILE: usize = 2;

/// A file that a sender announces.
pub(crate) struct Expected {
    pub name: Arc<str>,
    pub bytes: u64,
}

/// A killed peer is detected sooner.
const CUT_AFTER: Time = Time::from_s(15);

/// State that all transfers of a receiver share.
#[derive(Default)]
pub(crate) struct Shared {
    /// Names that current transfers will write.
    names: Mutex<BTreeSet<Arc<str>>>,
    memory_bytes: AtomicU64,
    /// Held while hashing existing files, so that hashing uses one core.
    pub turn: Mutex<()>,
}

/// A list whose names are this transfer's until it is dropped.
pub(crate) struct List<'a> {
    pub files: Vec<Expected>,
    shared: &'a Shared,
    memory_bytes: u64,
    reserved: usize,
}

impl Shared {
    fn names(&self) -> MutexGuard<'_, BTreeSet<Arc<str>>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for List<'_> {
    fn drop(&mut self) {
        self.shared.memory_bytes.fetch_sub(self.memory_bytes, Relaxed);
        let mut names = self.shared.names();
        for file in &self.files[..self.reserved] {
            names.remove(&file.name);
        }
    }
}

impl<'a> List<'a> {
    /// Reads a list, and checks it.
    pub fn read(stream: &mut Stream, shared: &'a Shared) -> Result<List<'a>, TransferError> {
        let count = stream.read_u32()?;
        if count >= MAX_FILES {
            let why = format!("{count} files at once; at most {}", MAX_FILES - 1);
            return Err(TransferError::Refused(why));
        }
        let mut list = List { files: Vec::new(), shared, memory_bytes: 0, reserved: 0 };
        let mut name_bytes = 0;
        for _ in 0..count {
            let name = stream.read_text()?;
            let bytes = stream.read_u64()?;
            name_bytes += name.len() as u64;
            list.remember(name.len() as u64 + FILE_BYTES)?;
            let why = match parts(&name) {
                Err(why) => why,
                _ if name_bytes > MAX_NAME_BYTES => format!("more than {MAX_NAME_BYTES} bytes of names"),
                _ if i64::try_from(bytes).is_err() => format!("{name}: {bytes} bytes; no file has so many"),
                Ok(_) => {
                    list.files.push(Expected { name: name.into(), bytes });
                    continue;
                }
            };
            return Err(TransferError::Refused(why));
        }
        list.count_folders()?;
        list.reserve(stream)?;
        Ok(list)
    }

    fn remember(&mut self, bytes: u64) -> Result<(), TransferError> {
        self.memory_bytes += bytes;
        if self.shared.memory_bytes.fetch_add(bytes, Relaxed) + bytes > MAX_MEMORY_BYTES {
            let why = "the lists of all senders are too long together; try again later, or send fewer files";
            return Err(TransferError::Refused(why.into()));
        }
        Ok(())
    }

    fn count_folders(&self) -> Result<(), TransferError> {
        let most = FREE_FOLDERS + FOLDERS_PER_FILE * self.files.len();
        let mut folders = BTreeSet::new();
        for Expected { name, .. } in &self.files {
            for (at, _) in name.match_indices('/').rev() {
                if !folders.insert(&name[..at]) {
                    break;
                }
            }
            if folders.len() > most {
                let why = format!("more than {most} folders for {} files", self.files.len());
                return Err(TransferError::Refused(why));
            }
        }
        Ok(())
    }

    /// Reserves the names for this transfer. An interrupted transfer keeps its names until its receiver
    /// detects the end.
    fn reserve(&mut self, stream: &mut Stream) -> Result<(), TransferError> {
        let mut own = BTreeSet::new();
        if let Some(Expected { name, .. }) = self.files.iter().find(|file| !own.insert(&*file.name)) {
            return Err(TransferError::Refused(format!("{name}: it is in the list twice")));
        }
        drop(own);
        let until = stream.age() + CUT_AFTER;
        while let Some(taken) = self.try_reserve() {
            if stream.age() > until {
                let why = format!("{taken}: another transfer of this name is under way");
                return Err(TransferError::Refused(why));
            }
            stream.pump(true)?;
            stream.working()?;
        }
        Ok(())
    }

    /// Reserves all names, or none; then returns the first name that another transfer has.
    fn try_reserve(&mut self) -> Option<Arc<str>> {
        let mut names = self.shared.names();
        if let Some(file) = self.files.iter().find(|file| names.contains(&file.name)) {
            return Some(file.name.clone());
        }
        names.extend(self.files.iter().map(|file| file.name.clone()));
        self.reserved = self.files.len();
        None
    }
}
