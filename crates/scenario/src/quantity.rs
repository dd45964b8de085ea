//! Values that a scenario spells as text, besides those of `lfn_units`.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

pub use lfn_keys::Packets;
use lfn_keys::{Given, Kind, Said, Value, Wrong};
use lfn_law::SlowStartKind;
use lfn_units::{Bytes, Time, UnitError};

/// The second and third number of `tcp_wmem` of Linux as installed.
const SOCKET_BUFFER_FIRST: Bytes = Bytes(16 << 10);
const SOCKET_BUFFER_MAX: Bytes = Bytes(4 << 20);

/// A value of a key that another crate spells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text<T>(pub T);

impl Value for Text<SlowStartKind> {
    type Range = ();
    const ANY: () = ();

    fn read(given: &Given, (): &()) -> Result<Self, Wrong> {
        lfn_keys::quantity(given, "a slow start", "classic").map(Text)
    }

    fn said(&self) -> Said {
        Said::Text(self.0.to_string())
    }

    fn kind((): &()) -> Kind {
        Kind::Words(SlowStartKind::NAMES)
    }
}

/// A law as it is written; which it is, is known where files are found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LawName(pub String);

impl FromStr for LawName {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<LawName, Infallible> {
        Ok(LawName(text.into()))
    }
}

impl fmt::Display for LawName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

macro_rules! quantity {
    ($($type:ty: $what:literal $example:literal;)*) => {
        $(impl Value for $type {
            type Range = ();
            const ANY: () = ();

            fn read(given: &Given, (): &()) -> Result<$type, Wrong> {
                lfn_keys::quantity(given, $what, $example)
            }

            fn said(&self) -> Said {
                Said::Text(self.to_string())
            }

            fn kind((): &()) -> Kind {
                Kind::Quantity($example, None)
            }
        })*
    };
}
quantity! {
    Window: "a window" "20 packets";
    SendBuffer: "a send buffer" "64MB";
    BufferSize: "a buffer size" "1bdp";
    Sample: "a sampling interval" "10ms";
    LawName: "a law" "cubic";
}

/// Names every unit of a quantity that has units of several kinds.
fn with_units(error: UnitError, text: &str, what: &'static str, allowed: &'static str) -> UnitError {
    match error {
        UnitError::BadUnit { .. } => UnitError::BadUnit { unit: Packets::unit(text).into(), what, allowed },
        other => other,
    }
}

/// A receive window: `"20 packets"` or `"64KiB"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// Full segments.
    Packets(u64),
    /// Payload bytes.
    Bytes(Bytes),
}

impl Window {
    /// Full packets that it holds.
    pub(crate) fn packets(self, payload_bytes: u32) -> u64 {
        match self {
            Window::Packets(n) => n,
            Window::Bytes(bytes) => bytes.0 / u64::from(payload_bytes),
        }
    }
}

impl FromStr for Window {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Window, UnitError> {
        if let Some(number) = Packets::before_word(text) {
            return number.map(Window::Packets);
        }
        let bytes = text.parse().map(Window::Bytes);
        bytes.map_err(|error| with_units(error, text, "window", "packets, B, kB, MB, GB, TB, KiB, MiB, GiB"))
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Window::Packets(n) => Packets(n).fmt(f),
            Window::Bytes(bytes) => bytes.fmt(f),
        }
    }
}

/// Send buffer of a host: `"64MB"`, `"1000 packets"`, `"linux"` for the buffer of Linux as installed, `"linux 64MB"` for
/// one with that maximum, or `"linux 1MB 64MB"` for one with that size at first, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendBuffer {
    /// As Linux sizes it, in bytes of the kernel's memory: the second and third number of `tcp_wmem`.
    Linux(Bytes, Bytes),
    /// So much.
    Fixed(Window),
}

impl SendBuffer {
    /// Full packets that it holds at most.
    pub(crate) fn packets(self, payload_bytes: u32) -> u64 {
        match self {
            SendBuffer::Linux(first, most) => first.max(most).0 / u64::from(payload_bytes),
            SendBuffer::Fixed(window) => window.packets(payload_bytes),
        }
    }
}

impl FromStr for SendBuffer {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<SendBuffer, UnitError> {
        match text.trim().strip_prefix("linux") {
            Some("") => return Ok(SendBuffer::Linux(SOCKET_BUFFER_FIRST, SOCKET_BUFFER_MAX)),
            Some(sizes) if sizes.starts_with(' ') => {
                // A size may have a space before its unit.
                let two = sizes.match_indices(' ').find_map(|(at, _)| {
                    Some(SendBuffer::Linux(sizes[..at].parse().ok()?, sizes[at..].parse().ok()?))
                });
                return two.map_or_else(
                    || sizes.parse().map(|most| SendBuffer::Linux(SOCKET_BUFFER_FIRST, most)),
                    Ok,
                );
            }
            _ => {}
        }
        if !text.trim().starts_with(|c: char| c.is_ascii_digit()) {
            let allowed =
                "\"linux\", \"linux\" and one or two sizes in bytes, or a number of packets, B, kB, MB, GB, TB, KiB, MiB, GiB";
            return Err(UnitError::BadUnit { unit: text.into(), what: "send buffer", allowed });
        }
        text.parse().map(SendBuffer::Fixed)
    }
}

impl fmt::Display for SendBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SendBuffer::Linux(SOCKET_BUFFER_FIRST, SOCKET_BUFFER_MAX) => f.write_str("linux"),
            SendBuffer::Linux(SOCKET_BUFFER_FIRST, most) => write!(f, "linux {most}"),
            SendBuffer::Linux(first, most) => write!(f, "linux {first} {most}"),
            SendBuffer::Fixed(window) => window.fmt(f),
        }
    }
}

/// The room of a queue: `"250 packets"`, `"12.5MB"` or `"0.5bdp"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferSize {
    /// Packets of any size.
    Packets(u64),
    /// Bytes on the wire.
    Bytes(Bytes),
    /// Millionths of the link's rate times the largest base RTT of the flows.
    MicroBdp(u64),
}

impl FromStr for BufferSize {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<BufferSize, UnitError> {
        if let Some(number) = Packets::before_word(text) {
            return number.map(BufferSize::Packets);
        }
        if let Some(number) = text.trim().strip_suffix("bdp") {
            // Millionths of a BDP are exact in the same way as bytes of a megabyte.
            let millionths: Result<Bytes, UnitError> = format!("{}MB", number.trim_end()).parse();
            return millionths.map(|Bytes(n)| BufferSize::MicroBdp(n)).map_err(|error| match error {
                UnitError::TooLarge { .. } => {
                    UnitError::TooLarge { got: text.into(), most: "18446744073709bdp" }
                }
                _ => UnitError::BadNumber { got: text.into(), example: "1bdp" },
            });
        }
        let bytes = text.parse().map(BufferSize::Bytes);
        bytes.map_err(|error| {
            with_units(error, text, "buffer size", "packets, bdp, B, kB, MB, GB, TB, KiB, MiB, GiB")
        })
    }
}

impl fmt::Display for BufferSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            BufferSize::Packets(n) => Packets(n).fmt(f),
            BufferSize::Bytes(bytes) => bytes.fmt(f),
            BufferSize::MicroBdp(n) => match (n / 1_000_000, n % 1_000_000) {
                (whole, 0) => write!(f, "{whole}bdp"),
                (whole, rest) => {
                    write!(f, "{whole}.{}bdp", format!("{rest:06}").trim_end_matches('0'))
                }
            },
        }
    }
}

/// Grid of the sampled tables: `"10ms"`, or `"off"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sample {
    /// No samples.
    Off,
    /// One row per flow and per link each time.
    Every(Time),
}

impl FromStr for Sample {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Sample, UnitError> {
        if text.trim() == "off" {
            return Ok(Sample::Off);
        }
        text.parse().map(Sample::Every)
    }
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sample::Off => f.write_str("off"),
            Sample::Every(time) => time.fmt(f),
        }
    }
}
