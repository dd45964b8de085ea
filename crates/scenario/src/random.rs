//! Whether a run depends on its seed.

use lfn_law::LawSpec;
use lfn_udt::ControlSpec;

use lfn_path::{AckImpair, Loss, Reorder};

use crate::model::{Change, Flow, OneWay, Pattern, Scenario, Series};
use crate::network::Network;
use crate::quantity::Start;

impl Scenario {
    /// Whether anything in it draws random numbers. If not, runs with other seeds are the same run again.
    pub fn is_random(&self) -> bool {
        Network::new(&self.topology).hops.iter().any(|hop| hop.way.is_random())
            || self.flow.iter().any(Flow::is_random)
            || self.udp.iter().any(|udp| matches!(udp.pattern, Pattern::OnOff(_)))
            || !self.background.is_silent()
            || !self.traffic.is_empty()
            || self.schedule.iter().any(Change::is_random)
    }
}

impl OneWay {
    fn is_random(&self) -> bool {
        let loses = |loss: Loss| match loss {
            Loss::Bernoulli(p) => p > 0.0,
            Loss::Bursts(_) => true,
        };
        let holds_up = |reorder: Option<Reorder>| reorder.is_some_and(|reorder| reorder.p > 0.0);
        let acks = |acks: AckImpair| loses(acks.loss) || holds_up(acks.reorder) || acks.jitter.is_some();
        loses(self.impair.loss)
            || self.impair.duplicate > 0.0
            || holds_up(self.impair.reorder)
            || self.impair.jitter.is_some()
            || self.acks.is_some_and(acks)
            || self.queue.discipline.draws()
            // Those that tell their load begin their intervals at a random time.
            || self.router.as_ref().is_some_and(|router| router.0.is_some())
    }
}

impl Flow {
    fn is_random(&self) -> bool {
        matches!(self.start, Start::Uniform(low, high) if low < high)
            || match &self.control {
                ControlSpec::Native(_) => true,
                // A class in Python may draw random numbers.
                ControlSpec::Law(law) => LawSpec::info(law).is_none_or(|law| law.draws),
            }
    }
}

impl Change {
    fn is_random(&self) -> bool {
        match self {
            Change::Link(change) => change.loss.is_some_and(|p| p > 0.0),
            Change::File(change) => {
                matches!(&change.series, Series::Loss(losses) if losses.iter().any(|&(_, p)| p > 0.0))
            }
            Change::Route(_) => false,
        }
    }
}
