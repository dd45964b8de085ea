//! Errors of transfers.

use std::io;
use std::path::Path;

use lfn_udt::Reason;

/// Reason why a transfer failed or is incomplete.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// The operating system refused.
    #[error("{what}: {error}")]
    Io {
        /// The operation and its object.
        what: String,
        /// The operating system's error.
        error: io::Error,
    },
    /// The connection ended.
    #[error("connection to {peer}: {reason}")]
    Connection {
        /// The other end.
        peer: String,
        /// Why.
        reason: Reason,
    },
    /// The peer violated the protocol.
    #[error("the peer sent {0}")]
    Protocol(String),
    /// The peer gave a reason to refuse.
    #[error("the peer refuses: {0}")]
    Refused(String),
    /// A request is invalid.
    #[error("{0}")]
    Usage(String),
    /// A file cannot be sent, or a directory cannot be written.
    #[error("{path}: {why}")]
    File {
        /// The file.
        path: String,
        /// Why not.
        why: String,
    },
    /// Files arrived with wrong hashes.
    #[error("{0} of the files differ from what was sent; run the same command again")]
    Differs(usize),
    /// The keys of the ends differ, or the path changed packets.
    #[error("connection to {peer}: {why}")]
    Key {
        /// The other end.
        peer: String,
        /// The fault.
        why: String,
    },
    /// The slot was given to a waiting peer.
    #[error("another peer took its slot, which had been idle")]
    Taken,
    /// The peer sent only keep-alives.
    #[error("nothing but keep-alives for ten minutes")]
    Idle,
    /// A defect of this program.
    #[error("a defect in lfn-transfer: {0}; please report it")]
    Defect(String),
    /// The caller interrupted the transfer.
    #[error("interrupted")]
    Interrupted,
}

impl TransferError {
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> TransferError {
        let what = what.into();
        move |error| TransferError::Io { what, error }
    }

    /// Exit code of a command for this error: 2 for usage, 3 for files, else 1.
    pub fn exit_code(&self) -> u8 {
        match self {
            TransferError::Usage(_) => 2,
            TransferError::File { .. } => 3,
            _ => 1,
        }
    }

    pub(crate) fn file(path: &Path, why: impl ToString) -> TransferError {
        TransferError::File { path: path.display().to_string(), why: why.to_string() }
    }
}
