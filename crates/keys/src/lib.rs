//! Keys of a scenario. [`keys!`] declares a key once, in the struct that it sets: name, type with unit, default,
//! range, one sentence. The reader of scenarios, canonical TOML, the JSON Schema, the reference and the values in
//! Python follow from [`Keys`].

mod value;

pub use value::{clip, quantity, quote, Given, Kind, Packets, Quantity, Said, Span, Value, Wrong};

use lfn_units::{Bytes, Time};

/// Longest delay of a scenario.
pub const DELAY_MAX: Time = Time::from_s(1000);
/// Largest IP packet of a scenario.
pub const PACKET_MAX: Bytes = Bytes(64_000);

/// One key.
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// What it means, without its default.
    pub about: &'static str,
    /// Its type and range.
    pub kind: Kind,
}

/// A table of keys.
pub trait Keys {
    /// All keys, in the order of the declaration.
    fn keys(&self) -> Vec<Key>;

    /// Sets a key.
    ///
    /// # Errors
    /// What was found and what is allowed.
    fn set(&mut self, key: &str, given: &Given) -> Result<(), Wrong>;

    /// The value of a key.
    fn get(&self, key: &str) -> Said;

    /// Completes the values after all keys were set: defaults that depend on other keys, and rules between keys.
    ///
    /// # Errors
    /// The key at fault, what was found and what is allowed.
    fn settle(&mut self, is_said: &dyn Fn(&str) -> bool) -> Result<(), (&'static str, Wrong)> {
        let _ = is_said;
        Ok(())
    }
}

/// Declares a struct of keys: `NAME: TYPE = DEFAULT, in RANGE;`. The range may be left out. After a key with
/// `then FUNCTION`, the other keys have the defaults that the function gives for its value. Fields under `set` are no
/// keys; the owner of the struct sets them. `settle FUNCTION` is [`Keys::settle`].
#[macro_export]
macro_rules! keys {
    (
        $(#[doc = $about:literal])*
        pub struct $table:ident {
            $($(#[doc = $says:literal])+ $key:ident: $type:ty = $default:expr $(, in $range:expr)? $(, then $base:path)?;)*
        }
        $(set { $($(#[doc = $means:literal])+ $field:ident: $field_type:ty = $initial:expr;)+ })?
        $(settle $settle:path;)?
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $table {
            $($(#[doc = $says])+ pub $key: $type,)*
            $($($(#[doc = $means])+ pub $field: $field_type,)+)?
        }

        impl Default for $table {
            fn default() -> $table {
                $table { $($key: $default,)* $($($field: $initial,)+)? }
            }
        }

        impl $crate::Keys for $table {
            fn keys(&self) -> Vec<$crate::Key> {
                vec![$($crate::Key {
                    name: stringify!($key),
                    about: concat!($($says),+).trim_ascii(),
                    kind: <$type as $crate::Value>::kind(&$crate::range!($type $(, $range)?)),
                }),*]
            }

            #[allow(unused_variables, reason = "a table may have no key")]
            fn set(&mut self, key: &str, given: &$crate::Given) -> Result<(), $crate::Wrong> {
                $(if key == stringify!($key) {
                    self.$key = <$type as $crate::Value>::read(given, &$crate::range!($type $(, $range)?))?;
                    $(*self = $base(self.$key);)?
                    return Ok(());
                })*
                unreachable!("{key} is no key")
            }

            fn get(&self, key: &str) -> $crate::Said {
                $(if key == stringify!($key) {
                    return $crate::Value::said(&self.$key);
                })*
                unreachable!("{key} is no key")
            }

            $(fn settle(
                &mut self,
                is_said: &dyn Fn(&str) -> bool,
            ) -> Result<(), (&'static str, $crate::Wrong)> {
                $settle(self, is_said)
            })?
        }
    };
}

/// The range of a key as declared, or any value of its type.
#[doc(hidden)]
#[macro_export]
macro_rules! range {
    ($type:ty) => {
        <$type as $crate::Value>::ANY
    };
    ($type:ty, $range:expr) => {
        $range
    };
}

/// The words of an enumeration, each for one variant.
#[macro_export]
macro_rules! words {
    ($type:ty { $($variant:ident = $word:literal,)+ }) => {
        impl $crate::Value for $type {
            type Range = ();
            const ANY: () = ();

            fn read(given: &$crate::Given, (): &()) -> Result<$type, $crate::Wrong> {
                match given {
                    $($crate::Given::Text($word) => Ok(<$type>::$variant),)+
                    _ => Err(given.refused(concat!("allowed: " $(, $word, ", ")+).trim_end_matches(", "))),
                }
            }

            fn said(&self) -> $crate::Said {
                $crate::Said::Text(match self { $(<$type>::$variant => $word,)+ }.into())
            }

            fn kind((): &()) -> $crate::Kind {
                $crate::Kind::Words(&[$($word),+])
            }
        }
    };
}

/// The kinds of a table, each a variant of an enumeration that holds its keys.
#[macro_export]
macro_rules! kinds {
    ($kinds:ident { $($name:ident = $kind:literal, $about:expr;)+ }) => {
        impl $kinds {
            /// The kinds, what each does, and its keys by default.
            pub fn kinds() -> Vec<(&'static str, &'static str, $kinds)> {
                vec![$(($kind, $about, $kinds::$name(Default::default()))),+]
            }

            /// Its kind.
            pub fn kind(&self) -> &'static str {
                match self { $($kinds::$name(_) => $kind,)+ }
            }

            /// Its keys.
            pub fn keys(&self) -> &dyn $crate::Keys {
                match self { $($kinds::$name(keys) => keys,)+ }
            }

            /// Its keys, to be set.
            pub fn keys_mut(&mut self) -> &mut dyn $crate::Keys {
                match self { $($kinds::$name(keys) => keys,)+ }
            }
        }
    };
}
