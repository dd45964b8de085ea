//! Long lists that grow by a quarter, not to twice their length: while one is copied, no more than 2.25 times what it
//! holds exists, not 3 times.

use std::collections::VecDeque;

/// Elements for which a full list of so many gets room.
fn room(elements: usize) -> usize {
    elements / 4 + 4
}

/// Room at the end of a full list.
#[inline]
pub fn grow<T>(list: &mut Vec<T>) {
    list.reserve_exact(room(list.len()));
}

/// Adds an element at the end.
#[inline]
pub fn push<T>(list: &mut Vec<T>, element: T) {
    if list.len() == list.capacity() {
        grow(list);
    }
    list.push(element);
}

/// Adds an element at the end of a queue.
#[inline]
pub fn push_back<T>(queue: &mut VecDeque<T>, element: T) {
    if queue.len() == queue.capacity() {
        queue.reserve_exact(room(queue.len()));
    }
    queue.push_back(element);
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

    /// Elements leave at the front meanwhile, so that the queue goes round its memory.
    #[test]
    fn queues_keep_room_for_a_quarter_more_and_their_order() {
        let mut queue = VecDeque::new();
        let mut next = 0;
        for n in 0..100_000_u32 {
            push_back(&mut queue, n);
            assert!(queue.capacity() <= queue.len() + room(queue.len()), "{n}");
            if n % 3 == 0 {
                assert_eq!(queue.pop_front(), Some(next));
                next += 1;
            }
        }
        assert_eq!(queue, (next..100_000).collect::<VecDeque<_>>());
    }
}
