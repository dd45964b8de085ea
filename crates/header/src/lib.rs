//! Congestion headers: what an end host writes into a data packet, what routers make of it on the way,
//! and what the receiver's ACK brings back.
//!
//! Rates count bytes on the wire per second. Fields are wide where the wire has fewer bits (XCP's have
//! 28 fraction bits), so that 10 Gbit/s and more can be said.

/// A protocol in which routers tell end hosts about congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
    /// Variable-structure congestion control protocol: two bits.
    Vcp,
    /// Explicit control protocol: a change of rate for each packet.
    Xcp,
    /// Rate control protocol: one rate for all flows of a link.
    Rcp,
    /// JetMax: a fair rate, and the link that it is of.
    JetMax,
}

/// VCP's code for the load of a link; 0, for a packet of another protocol, is [`Header::None`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Load {
    /// Load factor below 80 %.
    Low = 1,
    /// Below 100 %.
    High = 2,
    /// 100 % or more.
    Overload = 3,
}

/// XCP's header (draft-falk-xcp-spec-03 section 2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Xcp {
    /// Time between two packets of the flow.
    pub gap_s: f64,
    /// The sender's smoothed RTT; 0 while it knows none, and routers then grant nothing.
    pub rtt_s: f64,
    /// Change of rate that the sender asks for and routers cut down; in an ACK, that to make.
    pub delta_bytes_per_s: f64,
}

/// RCP's header.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rcp {
    /// The least rate of the links passed; infinite at the sender.
    pub rate_bytes_per_s: f64,
    /// The sender's smoothed RTT; 0 while it knows none.
    pub rtt_s: f64,
}

/// JetMax's header. Links are named by numbers above 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JetMax {
    /// Time between two packets of the flow.
    pub gap_s: f64,
    /// The least fair rate of the links passed; infinite at the sender.
    pub rate_bytes_per_s: f64,
    /// The control interval of the link of that rate.
    pub interval: u32,
    /// That link.
    pub link: u16,
    /// The link that the sender takes for its bottleneck; 0 for none yet.
    pub bottleneck: u16,
}

/// The header that a packet has for routers, and its ACK for the sender.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Header {
    /// Nothing: a packet of a flow without such a protocol.
    #[default]
    None,
    /// VCP's.
    Vcp(Load),
    /// XCP's.
    Xcp(Xcp),
    /// RCP's.
    Rcp(Rcp),
    /// JetMax's.
    JetMax(JetMax),
}

// A packet in a queue has one.
const _: () = assert!(size_of::<Header>() <= 32);

impl Header {
    /// Whether there is none.
    pub fn is_none(&self) -> bool {
        matches!(self, Header::None)
    }

    /// Adds the header of another data packet that the same ACK answers: of VCP's codes the highest, of
    /// XCP's changes the sum, of RCP and JetMax what came last.
    pub fn merge(&mut self, next: Header) {
        *self = match (*self, next) {
            (Header::Vcp(first), Header::Vcp(next)) => Header::Vcp(first.max(next)),
            (Header::Xcp(first), Header::Xcp(next)) => Header::Xcp(Xcp {
                delta_bytes_per_s: first.delta_bytes_per_s + next.delta_bytes_per_s,
                ..next
            }),
            (first, Header::None) => first,
            (_, next) => next,
        };
    }

    /// The ACK must not wait for another packet: a link is overloaded.
    pub fn is_urgent(&self) -> bool {
        matches!(self, Header::Vcp(Load::Overload))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ack_of_two_packets_says_what_both_were_told() {
        let merged = |mut first: Header, next: Header| {
            first.merge(next);
            first
        };
        let (low, over) = (Header::Vcp(Load::Low), Header::Vcp(Load::Overload));
        assert_eq!(merged(over, low), over);
        assert_eq!(merged(low, over), over);
        assert_eq!(merged(Header::None, low), low);
        assert_eq!(merged(low, Header::None), low);
        let xcp = |delta_bytes_per_s| Header::Xcp(Xcp { gap_s: 1e-3, rtt_s: 0.1, delta_bytes_per_s });
        assert_eq!(merged(xcp(300.0), xcp(-100.0)), xcp(200.0));
        let rcp = |rate_bytes_per_s| Header::Rcp(Rcp { rate_bytes_per_s, rtt_s: 0.1 });
        assert_eq!(merged(rcp(1e6), rcp(2e6)), rcp(2e6));
    }
}
