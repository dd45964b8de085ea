//! Files that a scenario names.

use std::fs;

use lfn_keys::File;

use crate::error::{quote, ScenarioError};
use crate::file::hash;
use crate::reader::Item;
use crate::without_mark;

/// Largest file.
const BYTES_MAX: u64 = 64 << 20;

/// Reads a file that this value names, and sets its hash. `parse` says what is wrong with its text as `what was found; what is allowed`.
pub(crate) fn read<T>(
    file: &mut File,
    item: &Item,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Result<T, ScenarioError> {
    let table = item.table();
    let at = table.get("path").unwrap_or_else(|| item.clone());
    let path = &*file.path;
    let error = |found: String, hint: &str| at.error(format!("{}: {found}", quote(path)), hint);
    let hint = "write the path of a file, from the directory of the scenario";
    // A FIFO would keep us waiting, and what has been read from it once is gone.
    if fs::metadata(at.beside(path)).is_ok_and(|found| !found.is_file()) {
        return Err(error("not a regular file".into(), hint));
    }
    let bytes =
        at.read(path, BYTES_MAX + 1).map_err(|cause| error(format!("cannot be read: {cause}"), hint))?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(error("longer than 64 MiB".into(), hint));
    }
    let hash = hash(&bytes);
    if file.hash.as_ref().is_some_and(|wanted| *wanted != hash) {
        let found = format!("the file has changed: its hash is now {hash}");
        return Err(table.error("hash", found, "leave the hash out to accept it"));
    }
    let text = String::from_utf8(bytes)
        .map(without_mark)
        .map_err(|_| error("not UTF-8 text".into(), "save the file as UTF-8"))?;
    let content = parse(&text).map_err(|message| {
        let (found, hint) = message.split_once("; ").unwrap_or((&message, ""));
        error(found.into(), hint)
    })?;
    file.hash = Some(hash);
    Ok(content)
}
