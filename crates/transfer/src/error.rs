//! Errors of transfers.

use std::io;
use std::path::Path;

use lfn_udt::Reason;

/// Why a transfer did not happen, or not whole.
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
    /// The peer sent what the protocol does not have.
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
    /// Files arrived, and their hashes differ.
    #[error("{0} of the files differ from what was sent; run the same command again")]
    Differs(usize),
    /// The keys of both ends are not the same, or packets were changed on the way.
    #[error("connection to {peer}: {why}")]
    Key {
        /// The other end.
        peer: String,
        /// The fault.
        why: String,
    },
    /// A peer that waited has the slot.
    #[error("another peer took its slot, which had been idle")]
    Taken,
    /// Nothing but keep-alives.
    #[error("nothing but keep-alives for ten minutes")]
    Idle,
    /// A mistake of this program's.
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

    /// The exit code of a command that ends with it: 2 for usage, 3 for files, else 1.
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
