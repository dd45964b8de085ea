//! Two connections and a path between them, in virtual time.

mod connection;
mod laws;
mod pair;
