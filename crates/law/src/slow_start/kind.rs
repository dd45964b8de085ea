//! The kinds of slow start, each once; build.rs reads this file too.

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident $name:literal)*) => {
        /// The kinds of slow start. The first four have the numbers of laws/slow_start.h.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u32)]
        pub enum SlowStartKind {
            $($(#[$doc])* $kind,)*
            /// The law has a start-up of its own (a `Controller`).
            None,
        }

        impl SlowStartKind {
            /// Those that a law can have before it.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$kind),*];
            /// The names of all kinds in scenarios and in the registry.
            pub const NAMES: &[&str] = &[$($name,)* "none"];
        }
    };
}

kinds! {
    /// One segment for each acknowledged (RFC 5681, counted in segments).
    Classic "classic"
    /// RFC 3742 with max_ssthresh = 100 segments.
    Limited "limited"
    /// HyStart as in Linux.
    HyStart "hystart"
    /// HyStart++ (RFC 9406).
    HyStartPlusPlus "hystart++"
    /// Rapid Start (draft-kazuho-ccwg-rapid-start).
    Rapid "rapid"
    /// SEARCH 3.0 (draft-chung-ccwg-search).
    Search "search"
    /// Careful Resume (RFC 9959), from what an earlier connection saved.
    CarefulResume "careful-resume"
}

impl SlowStartKind {
    /// The name in scenarios and in the registry.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// The kind of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().chain([Self::None]).find(|kind| kind.name() == name)
    }
}
