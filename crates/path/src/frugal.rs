//! Long lists that grow by a quarter, not to twice their length: while one is copied, no more than 2.25 times what it
//! holds exists, not 3 times.

/// Elements for which a full list of so many gets room.
fn room(elements: usize) -> usize {
    elements / 4 + 4
}

/// Adds an element at the end.
#[inline]
pub fn push<T>(list: &mut Vec<T>, element: T) {
    if list.len() == list.capacity() {
        list.reserve_exact(room(list.len()));
    }
    list.push(element);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_keep_room_for_a_quarter_more() {
        let mut list = Vec::new();
        for n in 0..100_000_u32 {
            push(&mut list, n);
            assert!(list.capacity() <= list.len() + room(list.len()), "{n}");
        }
        assert_eq!(list, (0..100_000).collect::<Vec<_>>());
    }
}
