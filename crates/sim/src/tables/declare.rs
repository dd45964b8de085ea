//! How a table is declared: [`tables!`] makes rows, columns, their sizes and their description from one list.

/// A type of the values of a column.
pub trait Cell {
    /// As the column holds it.
    type Stored: Copy;
    /// Meanings of the codes of an enumeration, from 0 on; empty for numbers.
    const CODES: &'static [&'static str] = &[];
    /// The value as the column holds it.
    fn stored(self) -> Self::Stored;
}

macro_rules! numbers {
    ($($number:ty)*) => {$(
        impl Cell for $number {
            type Stored = $number;
            fn stored(self) -> $number {
                self
            }
        }
    )*};
}

numbers!(f64 u64 u32 u16 u8);

/// An enumeration of a byte as the values of a column: each variant, in order from 0 on, with its words.
macro_rules! codes {
    ($type:ty { $($variant:ident: $words:literal,)+ }) => {
        impl Cell for $type {
            type Stored = u8;
            const CODES: &'static [&'static str] = &[$($words),+];
            fn stored(self) -> u8 {
                self as u8
            }
        }
        const _: () = {
            let mut code = 0;
            $(
                assert!(<$type>::$variant as u8 == code, "variants stand in the order of their codes");
                code += 1;
            )+
            let _ = code;
        };
    };
}
pub(super) use codes;

/// The values of a column.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the type is its documentation")]
pub enum Column {
    F64(Vec<f64>),
    U64(Vec<u64>),
    U32(Vec<u32>),
    U16(Vec<u16>),
    U8(Vec<u8>),
}

macro_rules! columns {
    ($($number:ty, $variant:ident, $name:literal;)*) => {$(
        impl From<Vec<$number>> for Column {
            fn from(values: Vec<$number>) -> Column {
                Column::$variant(values)
            }
        }
        impl Named for $number {
            const NAME: &'static str = $name;
        }
    )*};
}

/// The name of a type of numbers.
pub(super) trait Named {
    const NAME: &'static str;
}

columns! { f64, F64, "f64"; u64, U64, "u64"; u32, U32, "u32"; u16, U16, "u16"; u8, U8, "u8"; }

/// The description of a table.
#[derive(Clone, Copy, Debug)]
pub struct TableSchema {
    /// The name of the table and of its file.
    pub name: &'static str,
    /// A row of it.
    pub meaning: &'static str,
    /// Its columns, in order.
    pub columns: &'static [ColumnSchema],
}

/// The description of a column.
#[derive(Clone, Copy, Debug)]
pub struct ColumnSchema {
    /// Its name, which ends with its unit where it has one.
    pub name: &'static str,
    /// The type of its values: f64, u64, u32, u16, u8.
    pub kind: &'static str,
    /// The unit of its values; empty for codes and numbers of things.
    pub unit: &'static str,
    /// One sentence.
    pub meaning: &'static str,
    /// Meanings of the codes, from 0 on; empty for numbers.
    pub codes: &'static [&'static str],
}

/// Declares the tables of a run. Of each: a sentence, its name, the type of its rows and of its columns, and
/// the columns, each with a sentence, its type and its unit.
///
/// A row type has the columns as fields. A table type has a `Vec` for each, `push` of a row, `ROW_BYTES`
/// (bytes of a row) and `memory_bytes`. `Tables` has all tables, and `TABLES` describes them.
macro_rules! tables {
    ($(
        #[doc = $table_meaning:literal]
        $(#[$attribute:meta])*
        $table:ident: $Row:ident in $Table:ident {
            $($(#[doc = $meaning:literal])+ $column:ident: $cell:ty, $unit:literal;)+
        }
    )+) => {
        $(
            #[doc = $table_meaning]
            #[derive(Clone, Copy, Debug)]
            $(#[$attribute])*
            pub struct $Row {
                $($(#[doc = $meaning])+ pub $column: $cell,)+
            }

            #[doc = concat!("Columns of [`", stringify!($Row), "`].")]
            #[derive(Clone, Debug, Default)]
            pub struct $Table {
                $($(#[doc = $meaning])+ pub $column: Vec<<$cell as Cell>::Stored>,)+
            }

            impl $Table {
                /// Bytes of a row.
                pub const ROW_BYTES: usize = 0 $(+ size_of::<<$cell as Cell>::Stored>())+;

                /// Adds a row.
                #[inline]
                pub fn push(&mut self, row: $Row) {
                    let (rows, room, ..) = ($(self.$column.len(), self.$column.capacity(),)+);
                    if rows == room {
                        self.grow();
                    }
                    $(self.$column.push(row.$column.stored());)+
                }

                /// Room for more rows, in all columns alike.
                #[cold]
                fn grow(&mut self) {
                    $(self.$column.reserve_exact(self.$column.len().max(4));)+
                }

                /// Memory of the columns, with their room to grow. All columns have the same capacity.
                pub fn memory_bytes(&self) -> usize {
                    let (rows, ..) = ($(self.$column.capacity(),)+);
                    rows * Self::ROW_BYTES
                }

                /// Each column with its name, in order.
                pub fn into_columns(self) -> Vec<(&'static str, Column)> {
                    vec![$((stringify!($column), self.$column.into()),)+]
                }

                /// Row number `order[i]` becomes row `i`.
                #[allow(dead_code, reason = "not every table is sorted")]
                pub(crate) fn reorder(&mut self, order: &[usize]) {
                    $(self.$column = order.iter().map(|&row| self.$column[row]).collect();)+
                }
            }
        )+

        /// All tables of a run.
        #[derive(Clone, Debug, Default)]
        pub struct Tables {
            $(#[doc = $table_meaning] pub $table: $Table,)+
        }

        impl Tables {
            /// Memory of all columns, with their room to grow.
            pub fn memory_bytes(&self) -> usize {
                0 $(+ self.$table.memory_bytes())+
            }

            /// The columns of each table, with its name, in the order of [`TABLES`].
            pub fn into_columns(self) -> Vec<(&'static str, Vec<(&'static str, Column)>)> {
                vec![$((stringify!($table), self.$table.into_columns()),)+]
            }
        }

        /// Every table of a run, described.
        pub const TABLES: &[TableSchema] = &[$(
            TableSchema {
                name: stringify!($table),
                meaning: $table_meaning.trim_ascii(),
                columns: &[$(
                    ColumnSchema {
                        name: stringify!($column),
                        kind: <<$cell as Cell>::Stored as Named>::NAME,
                        unit: $unit,
                        meaning: concat!($($meaning),+).trim_ascii(),
                        codes: <$cell as Cell>::CODES,
                    },
                )+],
            },
        )+];
    };
}
pub(super) use tables;
