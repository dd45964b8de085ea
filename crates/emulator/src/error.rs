//! Why a path cannot be emulated.

use std::io;

/// Errors of the emulator.
#[derive(Debug, thiserror::Error)]
pub enum EmulatorError {
    /// A part of the scenario that cannot be emulated.
    #[error("{key}: {found}; {hint}")]
    Scenario {
        /// The key at fault, or the link.
        key: String,
        /// The value found.
        found: String,
        /// The values allowed.
        hint: String,
    },
    /// The operating system refused.
    #[error("{what}: {error}{hint}")]
    Os {
        /// The operation.
        what: String,
        /// Its error.
        error: io::Error,
        /// The missing requirement, if known.
        hint: &'static str,
    },
    /// A right that this user does not have.
    #[error("needs {0}")]
    Missing(&'static str),
    /// Paths in paths in paths.
    #[error("this namespace has no addresses left; allowed: {most} paths in each other")]
    Depth {
        /// So many.
        most: usize,
    },
    /// A process of ours could not do its part.
    #[error("{0}")]
    Ended(String),
}

impl EmulatorError {
    pub(crate) fn scenario(
        key: impl Into<String>,
        found: impl Into<String>,
        hint: impl Into<String>,
    ) -> EmulatorError {
        EmulatorError::Scenario { key: key.into(), found: found.into(), hint: hint.into() }
    }

    /// The last error of the C library, with what to do about the usual one.
    pub(crate) fn last(what: impl Into<String>, hint: &'static str) -> EmulatorError {
        EmulatorError::Os { what: what.into(), error: io::Error::last_os_error(), hint }
    }

    pub(crate) fn os(what: impl Into<String>, hint: &'static str) -> impl FnOnce(io::Error) -> EmulatorError {
        let what = what.into();
        move |error| EmulatorError::Os { what, error, hint }
    }
}
