//! Laws written in C behind the traits [`WindowLaw`] and [`Controller`].

use crate::interface::{CONTROL_STATE_BYTES, STATE_BYTES};
use crate::{Ack, Config, Control, Controller, Law, Loss, Rate, WindowLaw, PROBES};
use std::ffi::c_void;

/// State of laws in words.
pub(crate) const STATE_WORDS: usize = STATE_BYTES / 8;
pub(crate) const CONTROL_STATE_WORDS: usize = CONTROL_STATE_BYTES / 8;

/// `struct law_ops` of laws/law.h.
#[repr(C)]
pub(crate) struct LawOps {
    pub(crate) init: unsafe extern "C" fn(*mut c_void, *const Config, *mut Control),
    pub(crate) on_sample: Option<unsafe extern "C" fn(*mut c_void, *const Ack, *mut Control)>,
    pub(crate) on_ack: Option<unsafe extern "C" fn(*mut c_void, u32, *const Ack, *mut Control)>,
    pub(crate) on_loss: unsafe extern "C" fn(*mut c_void, *const Loss, *mut Control),
    pub(crate) on_open: Option<unsafe extern "C" fn(*mut c_void, *const Ack, *mut Control)>,
    pub(crate) on_tick: Option<unsafe extern "C" fn(*mut c_void, u64, *mut Control)>,
    pub(crate) on_undo: Option<unsafe extern "C" fn(*mut c_void, *mut Control)>,
    pub(crate) probe: Option<unsafe extern "C" fn(*const c_void, *const Control, *mut u64)>,
    pub(crate) on_control: Option<OnControl>,
    pub(crate) on_lost: Option<unsafe extern "C" fn(*mut c_void, u64, *const Rate, *const Control)>,
    pub(crate) on_restart: Option<unsafe extern "C" fn(*mut c_void, u64, *mut Control)>,
    pub(crate) state_bytes: u32,
    pub(crate) predicted: u32,
}

/// A law with [`WindowLaw::on_ack`] whose state Linux, too, has room for.
pub(crate) type CWindowLaw = CLaw<STATE_WORDS>;

/// One with more state, for the simulator only.
pub(crate) type CWideLaw = CLaw<CONTROL_STATE_WORDS>;

/// A law in C, with state of so many words.
pub(crate) struct CLaw<const WORDS: usize> {
    ops: &'static LawOps,
    state: [u64; WORDS],
}

impl<const WORDS: usize> CLaw<WORDS> {
    pub(crate) fn new(ops: &'static LawOps, config: &Config, control: &mut Control) -> Self {
        let mut law = Self { ops, state: [0; WORDS] };
        // SAFETY: as for every call below. A law's state is at most what `build` gives its kind
        // (asserted where it is compiled), aligned to at most 8, and follows no pointer but its arguments,
        // which live through the call and have the layout of law.h, since they are made from it.
        unsafe { (ops.init)(law.state(), config, control) };
        law
    }

    fn state(&mut self) -> *mut c_void {
        self.state.as_mut_ptr().cast()
    }
}

impl<const WORDS: usize> Law for CLaw<WORDS> {
    fn on_loss(&mut self, loss: &Loss, control: &mut Control) {
        // SAFETY: see `new`.
        unsafe { (self.ops.on_loss)(self.state(), loss, control) }
    }

    fn on_open(&mut self, ack: &Ack, control: &mut Control) {
        if let Some(on_open) = self.ops.on_open {
            // SAFETY: see `new`.
            unsafe { on_open(self.state(), ack, control) }
        }
    }

    fn on_tick(&mut self, now_ns: u64, control: &mut Control) {
        if let Some(on_tick) = self.ops.on_tick {
            // SAFETY: see `new`.
            unsafe { on_tick(self.state(), now_ns, control) }
        }
    }

    fn on_undo(&mut self, control: &mut Control) {
        if let Some(on_undo) = self.ops.on_undo {
            // SAFETY: see `new`.
            unsafe { on_undo(self.state(), control) }
        }
    }

    fn probe(&self, control: &Control, out: &mut [u64; PROBES]) {
        if let Some(probe) = self.ops.probe {
            // SAFETY: see `new`; `out` holds LAW_PROBES words.
            unsafe { probe(self.state.as_ptr().cast(), control, out.as_mut_ptr()) }
        }
    }
}

impl<const WORDS: usize> WindowLaw for CLaw<WORDS> {
    #[inline]
    fn on_sample(&mut self, ack: &Ack, control: &mut Control) {
        if let Some(on_sample) = self.ops.on_sample {
            // SAFETY: see `new`.
            unsafe { on_sample(self.state(), ack, control) }
        }
    }

    #[inline]
    fn on_ack(&mut self, n: u32, ack: &Ack, control: &mut Control) {
        if let Some(on_ack) = self.ops.on_ack {
            // SAFETY: see `new`.
            unsafe { on_ack(self.state(), n, ack, control) }
        }
    }
}

type OnControl = unsafe extern "C" fn(*mut c_void, *const Ack, *const Rate, *mut Control) -> u32;

/// A law in C that has `on_control`.
pub(crate) struct CController {
    law: CLaw<CONTROL_STATE_WORDS>,
    on_control: OnControl,
}

impl CController {
    /// None if the law has no `on_control`.
    pub(crate) fn new(ops: &'static LawOps, config: &Config, control: &mut Control) -> Option<Self> {
        let on_control = ops.on_control?;
        Some(Self { law: CLaw::new(ops, config, control), on_control })
    }
}

impl Law for CController {
    fn on_loss(&mut self, loss: &Loss, control: &mut Control) {
        self.law.on_loss(loss, control);
    }

    fn on_open(&mut self, ack: &Ack, control: &mut Control) {
        self.law.on_open(ack, control);
    }

    fn on_tick(&mut self, now_ns: u64, control: &mut Control) {
        self.law.on_tick(now_ns, control);
    }

    fn on_undo(&mut self, control: &mut Control) {
        self.law.on_undo(control);
    }

    fn probe(&self, control: &Control, out: &mut [u64; PROBES]) {
        self.law.probe(control, out);
    }
}

impl Controller for CController {
    fn on_control(&mut self, ack: &Ack, rate: &Rate, control: &mut Control) -> u32 {
        // SAFETY: see `CLaw::new`.
        unsafe { (self.on_control)(self.law.state(), ack, rate, control) }
    }

    fn on_lost(&mut self, now_ns: u64, lost: &Rate, control: &Control) {
        if let Some(on_lost) = self.law.ops.on_lost {
            // SAFETY: see `CLaw::new`.
            unsafe { on_lost(self.law.state(), now_ns, lost, control) }
        }
    }

    fn on_restart(&mut self, now_ns: u64, control: &mut Control) {
        if let Some(on_restart) = self.law.ops.on_restart {
            // SAFETY: see `CLaw::new`.
            unsafe { on_restart(self.law.state(), now_ns, control) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slow_start;
    use std::mem::{offset_of, size_of};

    #[test]
    fn structs_have_the_layout_of_law_h() {
        extern "C" {
            static law_layout: [u32; 20];
        }
        macro_rules! of_ops {
            ($($field:ident)*) => { [size_of::<LawOps>(), $(offset_of!(LawOps, $field)),*] };
        }
        let sizes = [
            size_of::<Ack>(),
            size_of::<Loss>(),
            size_of::<Control>(),
            size_of::<Rate>(),
            size_of::<Config>(),
        ];
        let ops = of_ops!(init on_sample on_ack on_loss on_open on_tick on_undo probe on_control on_lost on_restart
            state_bytes predicted);
        let rust = [&sizes[..], &ops, &[slow_start::STATE_BYTES]].concat();
        // SAFETY: src/layout.c defines it, with as many entries as `rust` has.
        let c: Vec<usize> = unsafe { law_layout }.iter().map(|&x| x as usize).collect();
        assert_eq!(rust, c);
    }
}
