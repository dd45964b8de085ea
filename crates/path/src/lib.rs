//! Path elements: queues and their management, shapers, delay lines, impairments. None knows a
//! clock or a source of randomness: the time and the draws are arguments.

pub mod red;
