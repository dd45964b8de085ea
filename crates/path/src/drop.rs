//! The two disciplines that only have a limit: drop-tail and drop-head.

use std::convert::Infallible;

use lfn_keys::keys;

use crate::counters::Ledger;
use crate::fifo::Fifo;
use crate::limit::DropReason;
use crate::rule::{Arrival, Parameters, Rule, Site};

keys! {
    /// Drops the packet that does not fit.
    #[derive(Copy)]
    pub struct DropTail {}
}

impl Parameters for DropTail {
    type Rule = DropTail;
    type Error = Infallible;
    const AT_ARRIVAL: bool = true;

    fn build(self, _: Site) -> Result<DropTail, Infallible> {
        Ok(self)
    }
}

impl Rule for DropTail {}

keys! {
    /// Drops the packets that have waited longest until the new one fits: the senders learn of it a
    /// queueing delay earlier (Lakshman, Neidhardt, Ott 1996).
    #[derive(Copy)]
    pub struct DropHead {}
}

impl Parameters for DropHead {
    type Rule = DropHead;
    type Error = Infallible;

    fn build(self, _: Site) -> Result<DropHead, Infallible> {
        Ok(self)
    }
}

impl Rule for DropHead {
    fn admit(
        &mut self,
        arrival: &Arrival,
        fifo: &mut Fifo,
        _: impl FnOnce() -> f64,
        ledger: &mut Ledger,
    ) -> Result<bool, DropReason> {
        while arrival.fits(fifo).is_err() {
            let Some(head) = fifo.pop() else { break };
            ledger.drop_full(head.packet);
        }
        arrival.fits(fifo).map(|()| false)
    }
}
