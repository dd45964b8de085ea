//! Frames of a pcap or pcapng file, also one packed by gzip, in one pass and bounded memory.

use std::io::{self, BufRead, BufReader, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use flate2::bufread::MultiGzDecoder;
use pcap_parser::{create_reader, Block, PcapBlockOwned, PcapError};

use crate::Error;

/// Bytes that are held of a file, and the most that a block may have.
const HELD: usize = 1 << 20;
const MOST_HELD: usize = 1 << 24;

/// A captured frame.
pub struct Captured<'a> {
    /// Time in nanoseconds since 1970; of a block without one None.
    pub t_ns: Option<u64>,
    /// Link type.
    pub link: i32,
    /// The captured bytes.
    pub data: &'a [u8],
    /// Bytes on the link.
    pub length: u32,
}

/// Facts of a file besides its frames.
#[derive(Debug, Default)]
pub struct About {
    /// Bytes read.
    pub bytes: u64,
    /// Packets that the capture dropped, where the file tells.
    pub dropped: Option<u64>,
    /// Why the rest of the file is not read: it is cut or damaged at byte `bytes`.
    pub stopped: Option<&'static str>,
}

#[derive(Clone, Copy)]
struct Interface {
    link: i32,
    /// Ticks of its clock in a second, and what is added, in seconds.
    per_s: u64,
    offset_s: i64,
    dropped: Option<u64>,
}

impl Interface {
    fn t_ns(&self, high: u32, low: u32) -> u64 {
        let ticks = u128::from(high) << 32 | u128::from(low);
        let ns = ticks * 1_000_000_000 / u128::from(self.per_s);
        let ns = ns as i128 + i128::from(self.offset_s) * 1_000_000_000;
        ns.clamp(0, i128::from(u64::MAX / 2)) as u64
    }
}

/// The interfaces of all sections; a packet names one of its own section.
#[derive(Default)]
struct Interfaces {
    all: Vec<Interface>,
    first: usize,
    is_big_endian: bool,
}

impl Interfaces {
    fn of(&mut self, number: u32) -> Result<&mut Interface, Error> {
        let place = self.first + number as usize;
        self.all.get_mut(place).ok_or(Error::Damaged("a packet of an interface that it does not have"))
    }

    fn add(&mut self, link: i32, per_s: u64, offset_s: i64) -> Result<(), Error> {
        if self.all.len() >= 65_536 {
            return Err(Error::Damaged("more than 65,536 interfaces"));
        }
        self.all.push(Interface { link, per_s, offset_s, dropped: None });
        Ok(())
    }
}

/// Ticks in a second by the byte of the option `if_tsresol`.
fn per_s(resolution: u8) -> u64 {
    let power = u32::from(resolution & 0x7F);
    if resolution & 0x80 == 0 {
        10u64.pow(power.min(19))
    } else {
        1 << power.min(63)
    }
}

/// The content of a gzip file (RFC 1952), up to where it is cut or damaged.
struct Unpacked<R> {
    decoder: MultiGzDecoder<R>,
    is_damaged: Arc<AtomicBool>,
}

impl<R: BufRead> Read for Unpacked<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        // An error would take with it what came before, which the capture's reader holds.
        Ok(self.decoder.read(into).unwrap_or_else(|_| {
            self.is_damaged.store(true, Ordering::Relaxed);
            0
        }))
    }
}

/// Calls `take` with each frame.
///
/// # Errors
/// The file is no capture, or holds nothing; what `take` returns.
pub fn frames(
    file: impl Read + Send,
    mut take: impl FnMut(Captured<'_>, u64) -> Result<(), Error>,
) -> Result<About, Error> {
    let mut file = BufReader::new(file);
    let is_damaged = Arc::new(AtomicBool::new(false));
    let is_packed = file.fill_buf().map_err(|_| Error::Unreadable)?.starts_with(&[0x1F, 0x8B]);
    let mut reader = if is_packed {
        let decoder = MultiGzDecoder::new(file);
        create_reader(HELD, Unpacked { decoder, is_damaged: Arc::clone(&is_damaged) })
    } else {
        create_reader(HELD, file)
    }
    .map_err(|error| match error {
        PcapError::Eof => Error::Empty,
        PcapError::ReadError => Error::Unreadable,
        _ => Error::Foreign,
    })?;
    let mut about = About::default();
    let mut interfaces = Interfaces::default();
    let mut is_first = true;
    loop {
        let (used, outcome) = match reader.next() {
            Ok((used, block)) => {
                let bytes = about.bytes;
                (used, block_of(&block, &mut interfaces, |frame| take(frame, bytes)))
            }
            Err(PcapError::Eof) => break,
            Err(PcapError::Incomplete(_)) => {
                reader.refill().map_err(|_| Error::Unreadable)?;
                continue;
            }
            Err(PcapError::BufferTooSmall) => {
                // It says so too when the buffer is full of blocks that were consumed.
                let held = reader.data().len();
                reader.refill().map_err(|_| Error::Unreadable)?;
                if reader.data().len() > held || reader.grow((held * 2).clamp(HELD * 2, MOST_HELD)) {
                    continue;
                }
                about.stopped = Some("a block of more than 16 MiB");
                break;
            }
            Err(PcapError::UnexpectedEof) => {
                about.stopped = Some("the file ends within a packet");
                break;
            }
            Err(PcapError::ReadError) => return Err(Error::Unreadable),
            Err(_) => {
                about.stopped = Some("it is damaged there");
                break;
            }
        };
        match outcome {
            Err(Error::Damaged(why)) => {
                about.stopped = Some(why);
                break;
            }
            other => other?,
        }
        about.bytes += used as u64;
        is_first = false;
        reader.consume(used);
    }
    if is_first {
        return Err(Error::Foreign);
    }
    if is_damaged.load(Ordering::Relaxed) {
        about.stopped = Some("what gzip packed ends or is damaged there");
    }
    let told = interfaces.all.iter().filter_map(|one| one.dropped);
    about.dropped = told.reduce(u64::saturating_add);
    Ok(about)
}

fn block_of(
    block: &PcapBlockOwned<'_>,
    interfaces: &mut Interfaces,
    mut take: impl FnMut(Captured<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    match block {
        PcapBlockOwned::LegacyHeader(header) => {
            let per_s = if header.is_nanosecond_precision() { 1_000_000_000 } else { 1_000_000 };
            // The upper bits tell of a frame check sequence.
            interfaces.add(header.network.0 & 0xFFFF, per_s, 0)
        }
        PcapBlockOwned::Legacy(packet) => {
            let interface = interfaces.of(0)?;
            let part_ns = u64::from(packet.ts_usec) * (1_000_000_000 / interface.per_s);
            let t_ns = u64::from(packet.ts_sec) * 1_000_000_000 + part_ns;
            let data = &packet.data[..packet.data.len().min(packet.caplen as usize)];
            take(Captured { t_ns: Some(t_ns), link: interface.link, data, length: packet.origlen })
        }
        PcapBlockOwned::NG(Block::SectionHeader(header)) => {
            interfaces.is_big_endian = header.big_endian();
            interfaces.first = interfaces.all.len();
            Ok(())
        }
        PcapBlockOwned::NG(Block::InterfaceDescription(told)) => {
            // The library reads this option as little-endian.
            let is_swapped = interfaces.is_big_endian;
            let offset_s = if is_swapped { told.if_tsoffset.swap_bytes() } else { told.if_tsoffset };
            interfaces.add(told.linktype.0, per_s(told.if_tsresol), offset_s)
        }
        PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
            let interface = interfaces.of(packet.if_id)?;
            let data = &packet.data[..packet.data.len().min(packet.caplen as usize)];
            let t_ns = Some(interface.t_ns(packet.ts_high, packet.ts_low));
            take(Captured { t_ns, link: interface.link, data, length: packet.origlen })
        }
        PcapBlockOwned::NG(Block::SimplePacket(packet)) => {
            let link = interfaces.of(0)?.link;
            take(Captured { t_ns: None, link, data: packet.data, length: packet.origlen })
        }
        PcapBlockOwned::NG(Block::InterfaceStatistics(told)) => {
            let is_swapped = interfaces.is_big_endian;
            if let (Ok(interface), Some(Ok(count))) = (interfaces.of(told.if_id), told.isb_ifdrop()) {
                interface.dropped = Some(if is_swapped { count.swap_bytes() } else { count });
            }
            Ok(())
        }
        PcapBlockOwned::NG(_) => Ok(()),
    }
}
