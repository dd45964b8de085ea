//! EVCP's convergence controller (Lu, Wang, Zhu): a flow whose window falls from decrease to decrease
//! has more than its share, cuts harder, and leaves multiplicative increase to others until the next
//! decrease. laws/cards/evcp.md says what the paper leaves open.

/// Factor of a decrease by VCP.
pub(super) const BETA: f64 = 0.875;

/// A flow's record of its last decreases. Windows in segments, before each decrease.
#[derive(Debug)]
pub(super) struct Convergence {
    /// Decreases in a row after which a flow may yield.
    n1: f64,
    /// Decreases in a row after which `w_max` is out of date.
    n2: f64,
    /// It yields if it has lost w_max/s.
    s: f64,
    /// Below this window it is plain VCP.
    w_low: f64,
    /// Factor by which yielding reduces the window.
    beta_c: f64,
    w_prev: f64,
    w_max: f64,
    num_dec: f64,
    /// It has yielded: no multiplicative increase until the next decrease.
    locked: bool,
}

impl Convergence {
    /// No decrease so far.
    pub(super) fn new([n1, n2, s, w_low, beta_c]: [f64; 5]) -> Convergence {
        Convergence { n1, n2, s, w_low, beta_c, w_prev: 0.0, w_max: 0.0, num_dec: 0.0, locked: false }
    }

    /// Whether code 1 counts as code 2.
    pub(super) fn is_locked(&self) -> bool {
        self.locked
    }

    /// Forgets the decreases before.
    pub(super) fn reset(&mut self) {
        (self.w_prev, self.w_max, self.num_dec) = (0.0, 0.0, 0.0);
    }

    /// A decrease at this window: what it leaves of it.
    pub(super) fn decrease(&mut self, w: f64) -> f64 {
        self.locked = false;
        if w < self.w_low {
            self.reset();
            return BETA;
        }
        if self.w_prev <= w {
            (self.w_prev, self.w_max, self.num_dec) = (w, w, 0.0);
            return BETA;
        }
        self.num_dec += 1.0;
        if self.num_dec >= self.n1 && self.w_max - w >= self.w_max / self.s {
            self.reset();
            self.locked = true;
            return self.beta_c;
        }
        self.w_prev = w;
        if self.num_dec >= self.n2 {
            (self.w_max, self.num_dec) = (w, 0.0);
        }
        BETA
    }

    /// w_max, the decreases in a row, whether it has yielded.
    pub(super) fn probe(&self, out: &mut [u64]) {
        out[..3].copy_from_slice(&[
            (self.w_max * 65536.0) as u64,
            self.num_dec as u64,
            u64::from(self.locked),
        ]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn controller() -> Convergence {
        Convergence::new([2.0, 10.0, 32.0, 38.0, 0.7])
    }

    fn decreases<const N: usize>(controller: &mut Convergence, windows: [f64; N]) -> [f64; N] {
        windows.map(|w| controller.decrease(w))
    }

    #[test]
    fn the_third_decrease_of_a_falling_window_is_a_harder_one() {
        let mut it = controller();
        assert_eq!(decreases(&mut it, [8000.0, 7600.0, 7400.0]), [0.875, 0.875, 0.7]);
        assert!(it.is_locked());
        // All is forgotten, and the next decrease is the first again.
        assert_eq!(it.decrease(5000.0), 0.875);
        assert!(!it.is_locked());
        assert_eq!((it.w_max, it.w_prev, it.num_dec), (5000.0, 5000.0, 0.0));
    }

    #[test]
    fn less_than_a_32nd_is_not_enough_and_a_slow_fall_renews_the_maximum() {
        let mut it = controller();
        assert_eq!(decreases(&mut it, [8000.0, 7900.0, 7850.0]), [0.875; 3]);
        assert_eq!((it.w_prev, it.num_dec, it.w_max), (7850.0, 2.0, 8000.0));
        for k in 3..10 {
            assert_eq!(it.decrease(7850.0 - 10.0 * f64::from(k - 2)), 0.875);
        }
        assert_eq!((it.num_dec, it.w_max), (9.0, 8000.0));
        assert_eq!(it.decrease(7770.0), 0.875);
        assert_eq!((it.num_dec, it.w_max), (0.0, 7770.0));
    }

    #[test]
    fn a_window_that_rose_is_a_new_maximum() {
        let mut it = controller();
        assert_eq!(decreases(&mut it, [8000.0, 7600.0, 7700.0]), [0.875; 3]);
        assert_eq!((it.num_dec, it.w_max, it.w_prev), (0.0, 7700.0, 7700.0));
    }

    #[test]
    fn a_small_window_is_plain_vcps() {
        let mut it = controller();
        assert_eq!(decreases(&mut it, [80.0, 60.0, 37.9, 37.0, 36.0]), [0.875; 5]);
        assert_eq!((it.num_dec, it.w_max), (0.0, 0.0));
    }

    #[test]
    fn others_get_multiplicative_increase_if_those_who_yield_have_more_than_43_per_cent() {
        let load_after = |share: f64| BETA - (BETA - 0.7) * share;
        assert!(load_after(0.4285) > 0.8 && load_after(0.4286) < 0.8);
    }
}
