//! Header prediction, for a law that asks which ACKs it takes.

use lfn_law::{Ack, BoxedLaw, Control, Law, Loss, PlacedLaw, WindowLaw, ACK_PREDICTED, ACK_SACK, PROBES};

use crate::config::{payload_share, TUNED_BUFFER_BYTES};

/// A receiver with a buffer of [`TUNED_BUFFER_BYTES`] announces its window in this unit (RFC 7323 §2).
const UNIT_BYTES: u64 = 4096;
/// The announced window modulo the unit when the connection begins (measured on Linux 6.12).
const BEGIN_BYTES: u64 = 3596;

/// The receive window that ACKs announce, relative to the first one. Measured on Linux 6.12: it grows by all that
/// arrives, up to the share of payload in the buffer, of which half is announced. From then on it is smaller by what the
/// application has not read: the segments that the ACK covers, since the application reads after it.
#[derive(Clone, Copy, Debug, Default)]
struct AnnouncedWindow {
    units: u64,
}

impl AnnouncedWindow {
    /// Takes an ACK. Returns whether it announces the same window as the one before.
    fn stays(&mut self, ack: &Ack) -> bool {
        let mss = u64::from(ack.mss_B);
        let share = payload_share(mss);
        let most = TUNED_BUFFER_BYTES / 512 * share.saturating_sub(128);
        let mut bytes = ack.delivered * mss + BEGIN_BYTES;
        if bytes > most {
            let unread = u64::from(ack.acked) * mss * (share / 2) / 256;
            bytes = (most + UNIT_BYTES - 1).saturating_sub(unread);
        }
        std::mem::replace(&mut self.units, bytes / UNIT_BYTES) == self.units
    }
}

/// A law that is told with [`ACK_PREDICTED`] what Linux tells its laws by leaving out CA_ACK_SLOWPATH: header
/// prediction takes an ACK that brings neither SACK blocks, nor an echo, nor another receive window.
pub(super) struct HeaderPrediction {
    law: PlacedLaw,
    window: AnnouncedWindow,
}

impl HeaderPrediction {
    /// `law`, if it grows by ACKs, with that input; else unchanged.
    pub fn shown_to(mut law: PlacedLaw) -> PlacedLaw {
        if law.window().is_none() || law.router().is_some() {
            return law;
        }
        BoxedLaw::Window(Box::new(HeaderPrediction { law, window: AnnouncedWindow::default() })).into()
    }
}

impl Law for HeaderPrediction {
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

impl WindowLaw for HeaderPrediction {
    fn on_sample(&mut self, ack: &Ack, control: &mut Control) {
        let stays = self.window.stays(ack);
        let predicted = stays && ack.flags & ACK_SACK == 0 && ack.ce == 0;
        let ack = Ack { flags: ack.flags | if predicted { ACK_PREDICTED } else { 0 }, ..*ack };
        if let Some(mut law) = self.law.window() {
            law.on_sample(&ack, control);
        }
    }

    fn on_ack(&mut self, n: u32, ack: &Ack, control: &mut Control) {
        if let Some(mut law) = self.law.window() {
            law.on_ack(n, ack, control);
        }
    }
}

#[cfg(test)]
mod tests {
    use lfn_law::{registry, LawSpec};

    use super::*;

    #[test]
    fn linuxs_westwood_alone_asks() {
        let names =
            registry().iter().flat_map(|law| law.variants.iter().map(move |v| format!("{}:{v}", law.name)));
        let asks = |name: &String| name.parse::<LawSpec>().is_ok_and(|law| law.asks_for_prediction());
        assert_eq!(names.filter(asks).collect::<Vec<_>>(), ["westwood:linux", "westwood-s:linux"]);
    }

    /// Segments delivered with the ACK before, those that this ACK covers, and whether it announces the same window:
    /// growth of one segment a segment in units of 4096 bytes, then what nine segments leave unread.
    #[test]
    fn the_window_grows_and_then_stays_unless_much_is_unread() {
        for (before, covered, same) in [(9, 7, true), (11, 7, false), (7_000, 7, true), (7_000, 9, false)] {
            let mut window = AnnouncedWindow::default();
            let mut ack = Ack { delivered: before, mss_B: 1448, ..Ack::default() };
            window.stays(&ack);
            ack.delivered += 1;
            ack.acked = covered;
            assert_eq!(window.stays(&ack), same, "{covered} after {before}");
        }
    }
}
