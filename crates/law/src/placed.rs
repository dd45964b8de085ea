//! Where the law of a connection stands.

use std::ops::{Deref, DerefMut};

use crate::c::{CController, CWideLaw, CWindowLaw, LawOps, STATE_WORDS};
use crate::{Ack, Config, Control, Controller, Law, RouterLaw, WindowLaw};

/// The law of one connection. A law in C stands beside the sender that asks it, if its state is small: ten
/// thousand senders each save a way to memory.
pub struct PlacedLaw(Placed);

enum Placed {
    C(CWindowLaw),
    Boxed(BoxedLaw),
}

/// A law with a place of its own, by its kind.
pub enum BoxedLaw {
    /// A law that enlarges the window.
    Window(Box<dyn WindowLaw>),
    /// The end host of a router protocol.
    Router(Box<dyn RouterLaw>),
    /// A law that owns window and rate.
    Controller(Box<dyn Controller>),
}

impl PlacedLaw {
    /// A connection under the law of `ops`, with as much state as its kind may have.
    pub(crate) fn c(ops: &'static LawOps, config: &Config, control: &mut Control) -> PlacedLaw {
        match CController::new(ops, config, control) {
            Some(law) => BoxedLaw::Controller(Box::new(law)).into(),
            None if ops.state_bytes as usize > size_of::<[u64; STATE_WORDS]>() => {
                BoxedLaw::Window(Box::new(CWideLaw::new(ops, config, control))).into()
            }
            None => PlacedLaw(Placed::C(CWindowLaw::new(ops, config, control))),
        }
    }

    /// The law, if its window grows by ACKs; else it is a [`Controller`].
    #[inline(always)]
    pub fn window(&mut self) -> Option<PlacedWindowLaw<'_>> {
        match &mut self.0 {
            Placed::C(law) => Some(PlacedWindowLaw(Window::C(law))),
            Placed::Boxed(BoxedLaw::Window(law)) => Some(PlacedWindowLaw(Window::Boxed(&mut **law))),
            Placed::Boxed(BoxedLaw::Router(law)) => Some(PlacedWindowLaw(Window::Router(&mut **law))),
            Placed::Boxed(BoxedLaw::Controller(_)) => None,
        }
    }

    /// The law, if it is the end host of a router protocol.
    pub fn router(&mut self) -> Option<&mut dyn RouterLaw> {
        match &mut self.0 {
            Placed::Boxed(BoxedLaw::Router(law)) => Some(&mut **law),
            Placed::C(_) | Placed::Boxed(BoxedLaw::Window(_) | BoxedLaw::Controller(_)) => None,
        }
    }

    /// The law, if it owns window and rate.
    pub fn controller(&mut self) -> Option<&mut dyn Controller> {
        match &mut self.0 {
            Placed::Boxed(BoxedLaw::Controller(law)) => Some(&mut **law),
            Placed::C(_) | Placed::Boxed(BoxedLaw::Window(_) | BoxedLaw::Router(_)) => None,
        }
    }

    /// Whether the law is a [`Controller`].
    pub fn is_controller(&self) -> bool {
        matches!(self.0, Placed::Boxed(BoxedLaw::Controller(_)))
    }

    /// Bytes of the law beyond this struct.
    pub fn memory_bytes(&self) -> usize {
        match &self.0 {
            Placed::C(_) => 0,
            Placed::Boxed(_) => size_of_val(&**self),
        }
    }
}

/// The law of a connection whose window grows by ACKs.
pub struct PlacedWindowLaw<'a>(Window<'a>);

enum Window<'a> {
    C(&'a mut CWindowLaw),
    Boxed(&'a mut dyn WindowLaw),
    Router(&'a mut dyn RouterLaw),
}

impl PlacedWindowLaw<'_> {
    /// As [`WindowLaw::on_sample`] or [`RouterLaw::on_sample`].
    #[inline(always)]
    pub fn on_sample(&mut self, ack: &Ack, control: &mut Control) {
        match &mut self.0 {
            Window::C(law) => law.on_sample(ack, control),
            Window::Boxed(law) => law.on_sample(ack, control),
            Window::Router(law) => law.on_sample(ack, control),
        }
    }

    /// As [`WindowLaw::on_ack`]. The end host of a router protocol has grown in `on_sample`.
    #[inline(always)]
    pub fn on_ack(&mut self, n: u32, ack: &Ack, control: &mut Control) {
        match &mut self.0 {
            Window::C(law) => law.on_ack(n, ack, control),
            Window::Boxed(law) => law.on_ack(n, ack, control),
            Window::Router(_) => {}
        }
    }
}

impl From<BoxedLaw> for PlacedLaw {
    fn from(law: BoxedLaw) -> PlacedLaw {
        PlacedLaw(Placed::Boxed(law))
    }
}

impl Deref for PlacedLaw {
    type Target = dyn Law;

    #[inline]
    fn deref(&self) -> &(dyn Law + 'static) {
        match &self.0 {
            Placed::C(law) => law,
            Placed::Boxed(BoxedLaw::Window(law)) => &**law,
            Placed::Boxed(BoxedLaw::Router(law)) => &**law,
            Placed::Boxed(BoxedLaw::Controller(law)) => &**law,
        }
    }
}

impl DerefMut for PlacedLaw {
    #[inline]
    fn deref_mut(&mut self) -> &mut (dyn Law + 'static) {
        match &mut self.0 {
            Placed::C(law) => law,
            Placed::Boxed(BoxedLaw::Window(law)) => &mut **law,
            Placed::Boxed(BoxedLaw::Router(law)) => &mut **law,
            Placed::Boxed(BoxedLaw::Controller(law)) => &mut **law,
        }
    }
}
