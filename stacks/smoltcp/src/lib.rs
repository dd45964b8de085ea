//! smoltcp's controllers, unmodified, called as its TCP socket calls them. Its module is private, so their files are compiled
//! here, beside the one type of the socket that they use.

pub mod socket {
    pub mod tcp;
}

include!(concat!(env!("OUT_DIR"), "/time.rs"));
