//! quinn-proto's congestion controllers and whole connections, unmodified, in the laboratory's scenarios. The adapters are
//! those of `stacks`.

use std::path::Path;

use lfn_harness::{Error, Harness};
use lfn_law::LawSpec;
use lfn_scenario::Outside;
use lfn_stack_quinn::Kind;

/// The twenty scenarios for a controller.
///
/// # Errors
///
/// As [`Harness::linked`].
pub fn harness<K: Kind + 'static>() -> Result<Harness, Error> {
    // SAFETY: the adapter makes a table of controller.h, and keeps it.
    unsafe { Harness::linked(lfn_stack_quinn::table::<K>().cast()) }
}

/// Whole connections with a controller, as the law "whole" of a scenario.
pub struct Whole<K>(pub std::marker::PhantomData<K>);

impl<K: Kind + 'static> Outside for Whole<K> {
    fn find_law(&self, text: &str, _folder: &Path) -> Option<Result<LawSpec, String>> {
        // SAFETY: the adapter makes a table of stack.h, and keeps it.
        let find = || unsafe {
            lfn_controller::linked_stack(lfn_stack_quinn_whole::table::<K>().cast(), "00000000".into())
        };
        (text == "whole").then(|| find().map(LawSpec::from))
    }
}
