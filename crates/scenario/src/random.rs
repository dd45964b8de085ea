//! Whether a run depends on its seed.

use lfn_sim::rng::Streams;
use lfn_sim::Sim;

use crate::model::Scenario;

impl Scenario {
    /// Whether anything in it may draw random numbers. If not, runs with other seeds are the same run again. A
    /// simulation takes the streams of all that can draw when it is set up, so this sets one up.
    pub fn is_random(&self) -> bool {
        let mut scenario = self.clone();
        // All flows of a group draw alike.
        for flow in &mut scenario.flow {
            (flow.count, flow.parallel) = (1, 1);
        }
        let random = Streams::of_run(1);
        let config = scenario.drawn_config(1, &random);
        random.are_taken() || Sim::new(&config).is_ok_and(|sim| sim.draws())
    }
}
