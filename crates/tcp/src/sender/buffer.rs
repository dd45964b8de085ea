//! Data that may be sent: limits of the application, the send buffer and the receive window.

use super::output::Forced;
use super::timers::Timers;
use super::Sender;
use crate::{SendBuffer, SenderConfig};

/// Overhead of Linux 6.12 with the payload of a segment, in bytes (measured: SO_MEMINFO counts 2,280 bytes
/// for 1,448). When SACKs arrive, Linux merges the segments that they cover; duplicate ACKs merge nothing.
const SEGMENT_OVERHEAD_BYTES: u64 = 832;
/// Largest merged piece, in bytes (measured: one segment of 45 keeps its overhead).
const MERGED_BYTES: u64 = 65_536;
/// Linux sizes the buffer for segments of payload plus the first number, rounded up to a power of two, plus
/// the second (bytes; measured: 2,304 for 1,448 of payload, 16,640 for 8,948).
const HEADROOM_BYTES: u64 = 544;
const STRUCTURE_BYTES: u64 = 256;
/// Windows that the buffer holds; one more for a law with delivery rates, which may double its window at once
/// (measured: 69,120 bytes instead of 46,080 at a window of ten).
const WINDOWS: u64 = 2;
/// Smallest window, in segments, for which the buffer is sized.
const MIN_WINDOW_SEGMENTS: u64 = 10;

/// The socket buffer of Linux: it grows with the window up to a maximum and never shrinks; the application fills
/// it, and writes again only when a third of it is free.
#[derive(Clone, Debug)]
pub(super) struct SocketBuffer {
    /// Segments that the application has to send in all.
    to_write: u64,
    bytes: u64,
    max_bytes: u64,
    segment_bytes: u64,
    /// Bytes of buffer for each segment of the window.
    share_bytes: u64,
}

impl SocketBuffer {
    pub(super) fn new(
        (first_bytes, max_bytes): (u64, u64),
        mss_bytes: u32,
        to_write: u64,
        steered: bool,
    ) -> SocketBuffer {
        let payload = u64::from(mss_bytes);
        let room = (payload + HEADROOM_BYTES).next_power_of_two() + STRUCTURE_BYTES;
        SocketBuffer {
            to_write,
            bytes: first_bytes,
            max_bytes,
            segment_bytes: payload + SEGMENT_OVERHEAD_BYTES,
            share_bytes: (WINDOWS + u64::from(steered)) * room,
        }
    }

    fn grow(&mut self, window: u64) {
        let wanted = window.max(MIN_WINDOW_SEGMENTS).saturating_mul(self.share_bytes);
        self.bytes = self.bytes.max(wanted.min(self.max_bytes));
    }

    /// Segments that the application writes if the buffer holds `held` segments, `sacked` of them SACKed.
    fn to_write_now(&self, held: u64, sacked: u64, end: u64) -> u64 {
        let pieces = sacked * (self.segment_bytes - SEGMENT_OVERHEAD_BYTES) / MERGED_BYTES;
        let merged = sacked.saturating_sub(pieces);
        let held_bytes = held * self.segment_bytes - merged * SEGMENT_OVERHEAD_BYTES;
        // It is woken when a third of the buffer is free.
        if held_bytes > self.bytes / 3 * 2 {
            return 0;
        }
        (self.bytes - held_bytes).div_ceil(self.segment_bytes).min(self.to_write.saturating_sub(end))
    }
}

/// Data that may be sent.
pub(super) struct Supply {
    /// One past the last segment that the application has written.
    pub end: u64,
    /// Most segments outstanding, from a send buffer of fixed size and the receive window.
    pub room: u64,
    /// Send buffer of an untuned host.
    pub buffer: Option<Box<SocketBuffer>>,
}

impl Supply {
    /// The application has `segments` to send; `steered`: by a law with delivery rates.
    pub fn new(config: &SenderConfig, segments: u64, steered: bool) -> Supply {
        let room = config.room().min(config.syn_ack_window());
        match config.send_buffer {
            SendBuffer::Segments(_) => Supply { end: segments, room, buffer: None },
            SendBuffer::Autotuned { first_bytes, max_bytes } => {
                let bytes = (first_bytes, max_bytes);
                let buffer = SocketBuffer::new(bytes, config.mss_bytes, segments, steered);
                Supply { end: 0, room, buffer: Some(Box::new(buffer)) }
            }
        }
    }
}

impl Sender {
    /// The application writes, if there is room enough to wake it.
    #[cold]
    pub(super) fn write(&mut self) {
        let (una, in_flight) = (self.board.una(), self.board.in_flight());
        let window = self.control.cwnd.floor();
        let ran_out = self.board.nxt() > 0 && self.board.nxt() >= self.supply.end && in_flight < window;
        let Some(buffer) = &mut self.supply.buffer else { return };
        buffer.grow(window);
        let sacked = if self.config.sack { self.board.sacked_out() } else { 0 };
        let segments = buffer.to_write_now(self.supply.end - una, sacked, self.supply.end);
        if let Some(rate) = self.rate.as_mut().filter(|_| ran_out && segments > 0) {
            // The application wrote too late.
            rate.mark_app_limited(in_flight);
        }
        self.supply.end += segments;
    }

    /// Whether all of the application's data is acknowledged.
    pub fn is_done(&self) -> bool {
        let una = self.board.una();
        una >= self.supply.end && self.supply.buffer.as_ref().is_none_or(|buffer| una >= buffer.to_write)
    }

    /// Adds `segments` to the application's data.
    pub fn offer(&mut self, segments: u64) {
        match &mut self.supply.buffer {
            Some(buffer) => buffer.to_write = buffer.to_write.saturating_add(segments),
            None => self.supply.end = self.supply.end.saturating_add(segments),
        }
    }

    /// The application stops: nothing new is sent.
    pub fn stop(&mut self) {
        self.supply.end = self.supply.end.min(self.board.nxt());
        if let Some(buffer) = &mut self.supply.buffer {
            buffer.to_write = self.supply.end;
        }
    }

    /// The connection is aborted: outstanding segments are forgotten, so nothing is sent any more.
    pub fn abort(&mut self) {
        self.board.abort();
        self.stop();
        self.forced = Forced::default();
        self.timers = Timers { clock_ms: self.timers.clock_ms, ..Timers::default() };
    }
}
