//! Where the law of a connection stands.

use std::ops::{Deref, DerefMut};

use crate::c::{CLaw, LawOps, CONTROL_STATE_WORDS, STATE_WORDS};
use crate::{Config, Control, Law};

/// The law of one connection, beside what asks it if its state is small: ten thousand senders each save a
/// way to memory.
pub struct PlacedLaw(pub(crate) Placed);

pub(crate) enum Placed {
    Here(CLaw<STATE_WORDS>),
    Boxed(Box<dyn Law>),
}

impl Placed {
    /// A connection under the law of `ops`, with as much state as its kind may have.
    pub(crate) fn c(ops: &'static LawOps, config: &Config, control: &mut Control) -> Placed {
        if ops.on_control.is_some() {
            Placed::Boxed(Box::new(CLaw::<CONTROL_STATE_WORDS>::new(ops, config, control)))
        } else {
            Placed::Here(CLaw::new(ops, config, control))
        }
    }
}

impl Deref for PlacedLaw {
    type Target = dyn Law;

    #[inline]
    fn deref(&self) -> &(dyn Law + 'static) {
        match &self.0 {
            Placed::Here(law) => law,
            Placed::Boxed(law) => &**law,
        }
    }
}

impl DerefMut for PlacedLaw {
    #[inline]
    fn deref_mut(&mut self) -> &mut (dyn Law + 'static) {
        match &mut self.0 {
            Placed::Here(law) => law,
            Placed::Boxed(law) => &mut **law,
        }
    }
}

impl From<PlacedLaw> for Box<dyn Law> {
    fn from(law: PlacedLaw) -> Box<dyn Law> {
        match law.0 {
            Placed::Here(law) => Box::new(law),
            Placed::Boxed(law) => law,
        }
    }
}
