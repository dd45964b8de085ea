//! Memory of collections.

/// Bytes that a B-tree with so many entries of type `T` holds: its nodes are at least half full.
pub(crate) fn tree_bytes<T>(len: usize) -> usize {
    2 * len * size_of::<T>()
}
