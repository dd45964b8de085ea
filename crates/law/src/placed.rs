//! Where the law of a connection stands.

use std::ops::{Deref, DerefMut};

use crate::c::{CLaw, STATE_WORDS};
use crate::Law;

/// The law of one connection, beside what asks it if its state is small: ten thousand senders each save a
/// way to memory.
pub struct PlacedLaw(pub(crate) Placed);

pub(crate) enum Placed {
    Here(CLaw<STATE_WORDS>),
    Boxed(Box<dyn Law>),
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
