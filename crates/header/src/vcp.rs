//! VCP's header: two bits.

use crate::{unknown, Fields, Header};

/// VCP's code for the load of a link; 0, for a packet of another protocol, is [`Header::None`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Load {
    /// Load factor below 80 %.
    Low = 1,
    /// Below 100 %.
    High = 2,
    /// 100 % or more.
    Overload = 3,
}

impl Fields for Load {
    const WORDS: &'static str = "low|high|overload";

    fn of_words(words: &[&str], _: Header) -> Result<Load, String> {
        match words {
            ["low"] => Ok(Load::Low),
            ["high"] => Ok(Load::High),
            ["overload"] => Ok(Load::Overload),
            _ => unknown::<Load>(words),
        }
    }

    /// The highest load.
    fn merge(self, next: Load) -> Load {
        self.max(next)
    }

    fn is_urgent(self) -> bool {
        self == Load::Overload
    }
}
