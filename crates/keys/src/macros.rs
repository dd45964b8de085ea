//! The macros that declare keys.

/// Declares a struct of keys: `NAME: TYPE = DEFAULT, in RANGE;`. The range may be left out. A key that must be there
/// has no default but an example: `NAME: TYPE, in RANGE, like "NAME = VALUE";`. After a key with `then FUNCTION`, the
/// other keys have the defaults that the function gives for its value. Fields under `set` are no keys; the owner of the
/// struct sets them. `settle FUNCTION` is [`Keys::settle`](crate::Keys::settle). Keys of a struct that is
/// `part of another table` stand in the table to which a field of that type belongs.
#[macro_export]
macro_rules! keys {
    (
        $(#[doc = $about:literal])*
        $(#[derive($($derive:ident),+)])?
        pub struct $table:ident $(, $part:ident of another table)? {
            $(
                $(#[doc = $says:literal])+
                $key:ident: $type:ty $(= $default:expr)? $(, in $range:expr)? $(, like $example:literal)?
                $(, then $base:path)?;
            )*
        }
        $(set { $($(#[doc = $means:literal])+ $field:ident: $field_type:ty = $initial:expr;)+ })?
        $(settle $settle:path;)?
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug, PartialEq)]
        $(#[derive($($derive),+)])?
        pub struct $table {
            $($(#[doc = $says])+ pub $key: $type,)*
            $($($(#[doc = $means])+ pub $field: $field_type,)+)?
        }

        impl Default for $table {
            fn default() -> $table {
                $table { $($key: $crate::default!($($default)?),)* $($($field: $initial,)+)? }
            }
        }

        impl $crate::Keys for $table {
            fn keys(&self) -> Vec<$crate::Key> {
                #[allow(unused_mut, reason = "a table may have no key")]
                let mut keys = Vec::new();
                $(match $crate::Value::part(&self.$key) {
                    Some(part) => keys.extend(part.keys()),
                    None => keys.push($crate::Key {
                        name: stringify!($key),
                        about: concat!($($says),+).trim_ascii(),
                        kind: || <$type as $crate::Value>::kind(&$crate::range!($type $(, $range)?)),
                        needed: $crate::needed!($($example)?),
                    }),
                })*
                keys
            }

            #[allow(unused_variables, reason = "a table may have no key")]
            fn set(&mut self, key: &str, given: &$crate::Given) -> Result<(), $crate::Wrong> {
                $(match $crate::Value::part_mut(&mut self.$key) {
                    Some(part) if part.keys().iter().any(|own| own.name == key) => return part.set(key, given),
                    None if key == stringify!($key) => {
                        self.$key = <$type as $crate::Value>::read(given, &$crate::range!($type $(, $range)?))?;
                        $(*self = $base(self.$key);)?
                        return Ok(());
                    }
                    _ => {}
                })*
                unreachable!("{key} is no key")
            }

            fn get(&self, key: &str) -> $crate::Said {
                $(match $crate::Value::part(&self.$key) {
                    Some(part) if part.keys().iter().any(|own| own.name == key) => return part.get(key),
                    None if key == stringify!($key) => return $crate::Value::said(&self.$key),
                    _ => {}
                })*
                unreachable!("{key} is no key")
            }

            #[allow(unused_variables, reason = "a table may have no rules")]
            fn settle(&mut self, is_said: &dyn Fn(&str) -> bool) -> Result<(), $crate::Wrong> {
                $(if let Some(part) = $crate::Value::part_mut(&mut self.$key) {
                    part.settle(is_said)?;
                })*
                $($settle(self, is_said)?;)?
                Ok(())
            }

            fn one_of(&self) -> Vec<&'static str> {
                let parts: Vec<Option<&dyn $crate::Keys>> = vec![$($crate::Value::part(&self.$key)),*];
                parts.into_iter().flatten().flat_map(|part| part.one_of()).collect()
            }
        }

        impl $crate::Value for $table {
            type Range = ();
            const ANY: () = ();
            const TABLE: bool = true;

            fn read(given: &$crate::Given, (): &()) -> Result<$table, $crate::Wrong> {
                let mut table = $table::default();
                $crate::read(&mut table, given)?;
                Ok(table)
            }

            fn said(&self) -> $crate::Said {
                $crate::Said::Table($crate::said(self))
            }

            fn kind((): &()) -> $crate::Kind {
                const ABOUT: &str = concat!($($about),*).trim_ascii();
                $crate::Kind::Table($crate::Shape::new(stringify!($table), ABOUT, &$table::default()))
            }

            $crate::part!($($part)?);
        }
    };
}

/// A default as declared, or that of the type.
#[doc(hidden)]
#[macro_export]
macro_rules! default {
    () => {
        Default::default()
    };
    ($default:expr) => {
        $default
    };
}

/// The example of a key that must be there.
#[doc(hidden)]
#[macro_export]
macro_rules! needed {
    () => {
        None
    };
    ($example:literal) => {
        Some($example)
    };
}

/// The methods of a value whose keys stand in another's table.
#[doc(hidden)]
#[macro_export]
macro_rules! part {
    () => {};
    (part) => {
        fn part(&self) -> Option<&dyn $crate::Keys> {
            Some(self)
        }

        fn part_mut(&mut self) -> Option<&mut dyn $crate::Keys> {
            Some(self)
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
                    _ => Err(given.refused(&[$($word),+])),
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

/// The kinds of a table, each a variant of an enumeration that holds its keys. With a name and a meaning, the table is
/// a value of a key.
#[macro_export]
macro_rules! kinds {
    (
        $kinds:ident $(, $called:literal, $means:literal $(, like $example:literal)?)?
        { $($name:ident = $kind:literal, $about:expr;)+ }
    ) => {
        impl $crate::Kinds for $kinds {
            $(
                const NAME: (&'static str, &'static str) = ($called, $means);
                const NEEDED: Option<&'static str> = $crate::needed!($($example)?);
            )?

            fn kinds() -> Vec<(&'static str, &'static str, $kinds)> {
                vec![$(($kind, $about, $kinds::$name(Default::default()))),+]
            }

            fn kind(&self) -> &'static str {
                match self { $($kinds::$name(_) => $kind,)+ }
            }

            fn keys(&self) -> &dyn $crate::Keys {
                match self { $($kinds::$name(keys) => keys,)+ }
            }

            fn keys_mut(&mut self) -> &mut dyn $crate::Keys {
                match self { $($kinds::$name(keys) => keys,)+ }
            }
        }

        $(impl $crate::Value for $kinds {
            type Range = ();
            const ANY: () = $crate::nothing!($called);

            fn read(given: &$crate::Given, (): &()) -> Result<$kinds, $crate::Wrong> {
                $crate::Kinds::of(given)
            }

            fn said(&self) -> $crate::Said {
                $crate::Said::Table($crate::Kinds::table(self))
            }

            fn kind((): &()) -> $crate::Kind {
                <$kinds as $crate::Kinds>::shapes()
            }
        })?
    };
}

/// Nothing.
#[doc(hidden)]
#[macro_export]
macro_rules! nothing {
    ($any:literal) => {
        ()
    };
}

/// Keys of a table of which exactly one must be there, each a variant of an enumeration: `VARIANT = "KEY": TYPE;`. The
/// keys stand in the table to which a field of this type belongs.
#[macro_export]
macro_rules! one_of {
    (
        $(#[doc = $about:literal])*
        pub enum $name:ident, like $example:literal {
            $($(#[doc = $says:literal])+ $variant:ident = $key:literal: $type:ty $(, in $range:expr)?;)+
        }
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug, PartialEq)]
        pub enum $name {
            $($(#[doc = $says])+ $variant($type),)+
        }

        impl $name {
            /// The keys.
            pub const KEYS: &'static [&'static str] = &[$($key),+];

            /// The key that is there.
            pub fn key(&self) -> &'static str {
                match self { $($name::$variant(_) => $key,)+ }
            }
        }

        impl Default for $name {
            fn default() -> $name {
                let first = [$(|| $name::$variant(Default::default())),+][0];
                first()
            }
        }

        impl $crate::Keys for $name {
            fn keys(&self) -> Vec<$crate::Key> {
                vec![$($crate::Key {
                    name: $key,
                    about: concat!($($says),+).trim_ascii(),
                    kind: || <$type as $crate::Value>::kind(&$crate::range!($type $(, $range)?)),
                    needed: None,
                }),+]
            }

            fn set(&mut self, key: &str, given: &$crate::Given) -> Result<(), $crate::Wrong> {
                $(if key == $key {
                    let value = <$type as $crate::Value>::read(given, &$crate::range!($type $(, $range)?))?;
                    *self = $name::$variant(value);
                })+
                Ok(())
            }

            fn get(&self, key: &str) -> $crate::Said {
                match self {
                    $($name::$variant(value) if key == $key => $crate::Value::said(value),)+
                    _ => $crate::Said::Nothing,
                }
            }

            fn settle(&mut self, is_said: &dyn Fn(&str) -> bool) -> Result<(), $crate::Wrong> {
                let said: Vec<&str> = $name::KEYS.iter().copied().filter(|key| is_said(key)).collect();
                match said[..] {
                    [_] => Ok(()),
                    [one, other, ..] => {
                        let hint = format!("write one of {}", $name::KEYS.join(", "));
                        Err($crate::Wrong::new(format!("found beside {one}"), hint).of(other))
                    }
                    [] => Err($crate::Wrong::missing($example).of($name::KEYS[0])),
                }
            }

            fn one_of(&self) -> Vec<&'static str> {
                $name::KEYS.to_vec()
            }
        }

        impl $crate::Value for $name {
            type Range = ();
            const ANY: () = ();

            fn read(_: &$crate::Given, (): &()) -> Result<$name, $crate::Wrong> {
                unreachable!("its keys are read")
            }

            fn said(&self) -> $crate::Said {
                $crate::Said::Nothing
            }

            fn kind((): &()) -> $crate::Kind {
                $crate::Kind::Text
            }

            $crate::part!(part);
        }
    };
}
