//! A table of a run as a Parquet file in memory.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use lfn_sim::tables::Column;
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::Result;
use parquet::file::metadata::{KeyValue, ParquetMetaDataReader};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, Type, TypePtr};

/// Rows of a row group: a reader decodes several groups at a time.
const GROUP_ROWS: usize = 1 << 18;
/// Rows of a table up to which Snappy compresses its columns: Zstandard takes 30 µs a column before it begins, and
/// makes the files of a run of 1 s only a tenth smaller.
const FEW_ROWS: usize = 2_048;
/// SACK blocks of recorded packets: a block that is not there ends at 0, and is null in the file.
const BLOCKS: [[&str; 2]; 3] =
    [["sack1_start", "sack1_end"], ["sack2_start", "sack2_end"], ["sack3_start", "sack3_end"]];

/// A column with its name.
pub(crate) type Named = (&'static str, Column);

/// Bytes that the columns of a file take in memory, at least, by its footer.
///
/// # Errors
/// When it is no Parquet file.
pub(crate) fn memory_bytes(file: &Path) -> Result<u64> {
    let opened = File::open(file)?;
    let footer = ParquetMetaDataReader::new().parse_and_finish(&opened)?;
    let size = |bytes: i64| u64::try_from(bytes).unwrap_or(u64::MAX);
    let groups = footer.row_groups().iter();
    Ok(groups.fold(0, |sum: u64, group| {
        let cells = size(group.num_rows()).saturating_mul(8 * group.columns().len() as u64);
        sum.saturating_add(size(group.total_byte_size()).max(cells))
    }))
}

/// Rows of a table.
pub(crate) fn rows(columns: &[Named]) -> usize {
    columns.first().map_or(0, |(_, column)| match column {
        Column::F64(values) => values.len(),
        Column::U64(values) => values.len(),
        Column::U32(values) => values.len(),
        Column::U16(values) => values.len(),
        Column::U8(values) => values.len(),
    })
}

/// The bytes of a file of these columns, with `about` as its metadata: the same wherever they are written.
pub(crate) fn written(columns: &[Named], about: Vec<(String, String)>) -> Result<Vec<u8>> {
    let mut file = SerializedFileWriter::new(Vec::new(), schema(columns)?, properties(columns, about))?;
    let rows = rows(columns);
    for first in (0..rows).step_by(GROUP_ROWS) {
        let rows = first..rows.min(first + GROUP_ROWS);
        let mut group = file.next_row_group()?;
        for (name, column) in columns {
            let ends = ends_of(columns, name).map(|ends| &ends[rows.clone()]);
            let rows = rows.clone();
            match column {
                Column::F64(values) => write::<DoubleType, _>(&mut group, &values[rows], ends, |value| value),
                Column::U64(values) => {
                    write::<Int64Type, _>(&mut group, &values[rows], ends, |value| value as i64)
                }
                Column::U32(values) => {
                    write::<Int32Type, _>(&mut group, &values[rows], ends, |value| value as i32)
                }
                Column::U16(values) => write::<Int32Type, _>(&mut group, &values[rows], ends, i32::from),
                Column::U8(values) => write::<Int32Type, _>(&mut group, &values[rows], ends, i32::from),
            }?;
        }
        group.close()?;
    }
    file.into_inner()
}

/// Of a column of SACK blocks, where these end.
fn ends_of<'a>(columns: &'a [Named], name: &str) -> Option<&'a [u64]> {
    let [_, end] = BLOCKS.iter().find(|block| block.contains(&name))?;
    columns.iter().find_map(|(name, column)| match column {
        Column::U64(ends) if name == end => Some(&**ends),
        _ => None,
    })
}

fn schema(columns: &[Named]) -> Result<TypePtr> {
    let field = |(name, column): &Named| {
        let (physical, bits) = match column {
            Column::F64(_) => (Physical::DOUBLE, None),
            Column::U64(_) => (Physical::INT64, Some(64)),
            Column::U32(_) => (Physical::INT32, Some(32)),
            Column::U16(_) => (Physical::INT32, Some(16)),
            Column::U8(_) => (Physical::INT32, Some(8)),
        };
        let repetition = match ends_of(columns, name) {
            Some(_) => Repetition::OPTIONAL,
            None => Repetition::REQUIRED,
        };
        let unsigned = bits.map(|bits| LogicalType::integer(bits, false));
        let named = Type::primitive_type_builder(name, physical);
        named.with_repetition(repetition).with_logical_type(unsigned).build().map(Arc::new)
    };
    let fields = columns.iter().map(field).collect::<Result<_>>()?;
    Type::group_type_builder("table").with_fields(fields).build().map(Arc::new)
}

/// Of eight sets of encodings these take the least time, and give short runs the smallest files.
fn properties(columns: &[Named], about: Vec<(String, String)>) -> WriterPropertiesPtr {
    let about = about.into_iter().map(|(key, value)| KeyValue::new(key, value)).collect();
    let compression = match rows(columns) {
        ..=FEW_ROWS => Compression::SNAPPY,
        _ => Compression::ZSTD(ZstdLevel::default()),
    };
    let mut properties = WriterProperties::builder()
        .set_compression(compression)
        .set_dictionary_enabled(false)
        // A table is read as a whole, which needs no statistics of its columns.
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
        .set_key_value_metadata(Some(about));
    for (name, column) in columns {
        if matches!(column, Column::U64(_) | Column::U32(_) | Column::U16(_)) {
            let path = ColumnPath::from(*name);
            properties = properties.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        }
    }
    Arc::new(properties.build())
}

/// The next column of a row group, null where a SACK block is not there.
fn write<T: DataType, V: Copy>(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    values: &[V],
    ends: Option<&[u64]>,
    stored: impl Fn(V) -> T::T,
) -> Result<()> {
    let mut column = group.next_column()?.expect("a column for each of the schema");
    let levels: Option<Vec<i16>> = ends.map(|ends| ends.iter().map(|&end| i16::from(end > 0)).collect());
    let is_there = |row: usize| ends.is_none_or(|ends| ends[row] > 0);
    let there = values.iter().enumerate().filter(|&(row, _)| is_there(row)).map(|(_, &value)| stored(value));
    column.typed::<T>().write_batch(&there.collect::<Vec<T::T>>(), levels.as_deref(), None)?;
    column.close()
}
