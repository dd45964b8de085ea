#![doc = include_str!("../README.md")]

mod accurate;
mod ecn;
pub mod jetmax;
pub mod rcp;
pub mod vcp;
pub mod xcp;

pub use accurate::Feedback;
pub use ecn::Ecn;

/// RTT and time between two packets in headers of law cards.
const CARD_RTT_S: f64 = 0.1;
const CARD_GAP_S: f64 = 1e-3;

/// The fields of a protocol's header.
pub trait Fields: Copy {
    /// The words after the protocol in a statement `header` of a law card.
    const WORDS: &'static str;

    /// The header that these words name; `before` is that of the previous ACK.
    ///
    /// # Errors
    /// `what was found; what is allowed`.
    fn of_words(words: &[&str], before: Header) -> Result<Self, String>;

    /// The answer to two data packets in one ACK: the last one, unless the protocol has another rule.
    #[must_use]
    fn merge(self, next: Self) -> Self {
        next
    }

    /// Whether the ACK must not wait for another packet.
    fn is_urgent(self) -> bool {
        false
    }
}

fn unknown<T: Fields>(words: &[&str]) -> Result<T, String> {
    Err(format!("found {:?}; allowed: {}", words.join(" "), T::WORDS))
}

fn number(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| format!("{text:?} is not a number; write for example 0.5"))
}

macro_rules! protocols {
    ($($name:ident = $word:literal: $fields:ty;)+) => {
        /// A protocol in which routers tell end hosts about congestion.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Protocol {
            $(#[doc = concat!("The protocol `", $word, "`.")] $name,)+
        }

        impl Protocol {
            /// All protocols: name, protocol, and the words after the name in a law card.
            pub const ALL: &'static [(&'static str, Protocol, &'static str)] =
                &[$(($word, Protocol::$name, <$fields as Fields>::WORDS)),+];
        }

        /// The header that a packet has for routers, and its ACK for the sender.
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        pub enum Header {
            /// Nothing: a packet of a flow without such a protocol.
            #[default]
            None,
            /// AccECN's feedback, which no router reads.
            Accurate(Feedback),
            $(#[doc = concat!("That of `", $word, "`.")] $name($fields),)+
        }

        impl Header {
            /// Adds the header of another data packet that the same ACK answers, by [`Fields::merge`].
            pub fn merge(&mut self, next: Header) {
                match (self, next) {
                    $((Header::$name(first), Header::$name(next)) => *first = first.merge(next),)+
                    (_, Header::None) => {}
                    (first, next) => *first = next,
                }
            }

            /// The ACK must not wait for another packet: a link is overloaded.
            pub fn is_urgent(&self) -> bool {
                match *self {
                    Header::None | Header::Accurate(_) => false,
                    $(Header::$name(fields) => fields.is_urgent(),)+
                }
            }

            /// The header of a law card: a protocol and its words. `before` is that of the previous ACK.
            ///
            /// # Errors
            /// `what was found; what is allowed`.
            pub fn of_words(words: &[&str], before: Header) -> Result<Header, String> {
                match words {
                    $([$word, rest @ ..] => <$fields as Fields>::of_words(rest, before).map(Header::$name),)+
                    _ => {
                        let allowed: Vec<String> =
                            Protocol::ALL.iter().map(|(name, _, words)| format!("{name} {words}")).collect();
                        Err(format!("no header {:?}; allowed: {}", words.join(" "), allowed.join(", ")))
                    }
                }
            }
        }
    };
}

protocols! {
    Vcp = "vcp": vcp::Load;
    Xcp = "xcp": xcp::Xcp;
    Rcp = "rcp": rcp::Rcp;
    JetMax = "jetmax": jetmax::JetMax;
}

// A packet in a queue has one.
const _: () = assert!(size_of::<Header>() <= 32);

impl Header {
    /// Whether there is none.
    pub fn is_none(&self) -> bool {
        matches!(self, Header::None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcp::Rcp;
    use vcp::Load;
    use xcp::Xcp;

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
