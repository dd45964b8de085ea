//! Sender and receiver settings.

use lfn_law::{Saved, SlowStartKind};
use lfn_units::Time;

/// Settings of a sender. [`SenderConfig::linux`] follows Linux 6.12; [`SenderConfig::ns2`] follows the
/// papers' ns-2.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SenderConfig {
    /// Payload bytes of a full segment; laws see it as their mss.
    pub mss_bytes: u32,
    /// Data wait for a handshake, which gives the first RTT sample.
    pub handshake: bool,
    /// Initial window in segments (RFC 6928: 10).
    pub initial_window_segments: u32,
    /// Initial ssthresh in segments; `None`: infinite.
    pub initial_ssthresh_segments: Option<u32>,
    /// Most segments outstanding beyond the cumulative ACK; `u64::MAX` for no limit.
    pub receive_window_segments: u64,
    /// Send buffer: limit on unacknowledged data in the sending host.
    pub send_buffer: SendBuffer,
    /// Slow start.
    pub slow_start: SlowStartKind,
    /// Measurements of an earlier connection, for Careful Resume.
    pub saved: Option<Saved>,
    /// SACK (RFC 2018, 6675); otherwise NewReno (RFC 6582).
    pub sack: bool,
    /// Loss detection.
    pub loss_detection: LossDetection,
    /// Reduction of the window in recovery.
    pub reduction: Reduction,
    /// RFC 7323 timestamps in milliseconds, as in Linux: they give an RTT sample where Karn's algorithm gives
    /// none.
    pub timestamps: bool,
    /// Undo spurious reductions, detected by timestamps (RFC 3522), DSACK (RFC 3708) or F-RTO (RFC 5682).
    pub undo: bool,
    /// Tail loss probes (RFC 8985 §7).
    pub tail_loss_probe: bool,
    /// Form of the retransmission timeout.
    pub rto: RtoForm,
    /// Smallest retransmission timeout.
    pub min_rto: Time,
    /// Largest retransmission timeout, also after back-off.
    pub max_rto: Time,
    /// ECN (RFC 3168).
    pub ecn: bool,
    /// Marks are counted by AccECN (RFC 9768) in place of the echo; needs `ecn`.
    pub accurate_ecn: bool,
    /// Retransmissions are ECN-capable: so in ns-2 and for DCTCP in Linux; RFC 3168 §6.1.5 forbids it.
    pub ecn_repairs: bool,
    /// SYN, SYN-ACK and ACKs are ECN-capable as data are: so for DCTCP in Linux (RFC 8257 §3.6; all three measured on 6.12).
    pub ecn_control: bool,
    /// Pace even if the law does not request it: 2 cwnd/srtt in slow start, 1.2 cwnd/srtt after.
    pub pacing: bool,
    /// Segments that leave together, as with segmentation offload; without pacing alone.
    pub burst_segments: u64,
    /// After a pause of a slow application its window is lower, as in Linux.
    pub validation: bool,
}

/// Limit on unacknowledged segments in the sending host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendBuffer {
    /// This many segments; the application refills the buffer at once. `u64::MAX` for no limit.
    Segments(u64),
    /// Linux's socket buffer, in bytes of kernel memory. It grows with the window, and includes unsent data. Linux
    /// wakes the application when a third is free; the application fills the buffer.
    Autotuned {
        /// Size at first, in bytes: second number of `tcp_wmem`.
        first_bytes: u64,
        /// Largest size that it grows to, in bytes: third number of `tcp_wmem`.
        max_bytes: u64,
    },
}

/// Loss detection of the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossDetection {
    /// By time (RFC 8985), with the duplicate-ACK threshold as Linux applies it.
    Rack,
    /// Three SACKed segments above it (RFC 6675 IsLost), or three duplicate ACKs.
    DupThresh,
}

/// Reduction of the window after a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// Proportional rate reduction (RFC 6937 as Linux has it).
    Prr,
    /// At once to ssthresh; then the pipe limits sending (RFC 6675).
    Immediate,
}

/// Form of the retransmission timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtoForm {
    /// srtt + a margin of at least min_rto, which rises to 4 rttvar at once and falls by a quarter of the distance once
    /// a round trip: Linux (Sarolahti and Kuznetsov 2002).
    Linux,
    /// max(min_rto, srtt + max(30 ms, 4 rttvar)): RFC 6298 with the clock of ns-2, which ticks every 10 ms.
    Ns2,
}

/// Settings of a receiver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReceiverConfig {
    /// An ACK for every second segment; `false`: for every segment.
    pub delayed_ack: bool,
    /// Largest delay of an ACK that waits for a second segment.
    pub delayed_ack_timeout: Time,
    /// Receive buffer in bytes of kernel memory, for quick ACKs as in Linux: no delay at first, after a
    /// pause, after a duplicate segment, and while the receive window grows. `None`: delayed ACKs from the
    /// first segment on.
    pub buffer_bytes: Option<u64>,
    /// Payload bytes of a full segment.
    pub mss_bytes: u32,
    /// SACK blocks are reported.
    pub sack: bool,
    /// A duplicate segment is reported in the first SACK block (DSACK, RFC 2883); needs `sack`.
    pub dsack: bool,
    /// SACK compression: from the fourth duplicate ACK on, ACKs wait for this long (at most 5 % of `rtt_hint`), and the
    /// 0.1 ms that Linux's timer may be late; `None`: every out-of-order segment is acknowledged at once.
    pub sack_compression: Option<Time>,
    /// The receiver's idea of the round-trip time.
    pub rtt_hint: Time,
    /// CE marks are echoed, until the sender says that it reduced its window (RFC 3168).
    pub ecn: bool,
    /// CE marks are echoed segment by segment instead (RFC 8257 §3.2).
    pub echo_each_mark: bool,
}

/// Receive buffer of a tuned host (`tcp_rmem`), in bytes of kernel memory, for windows of at least 64 MiB.
pub const TUNED_BUFFER_BYTES: u64 = 128 << 20;
/// The window of a SYN-ACK, which is not scaled (RFC 7323 §2.2).
pub(crate) const SYN_ACK_WINDOW_BYTES: u32 = 65_535;
/// Segments acknowledged at once when a connection begins, after a pause, and after a duplicate segment
/// (measured on Linux 6.12).
pub(crate) const QUICK_ACKS: u32 = 16;
/// Overhead of a received segment in kernel memory, in bytes (measured with payloads of 524 to 8948 bytes).
/// Linux counts the share of payload in 256ths.
const SHARE: u64 = 256;
const SEGMENT_OVERHEAD_BYTES: u64 = 832;

impl SenderConfig {
    /// Today's Linux (6.12): IW 10, SACK, RACK, PRR, tail loss probes.
    pub fn linux(mss_bytes: u32, slow_start: SlowStartKind) -> SenderConfig {
        SenderConfig {
            mss_bytes,
            handshake: true,
            initial_window_segments: 10,
            initial_ssthresh_segments: None,
            receive_window_segments: u64::MAX,
            send_buffer: SendBuffer::Segments(u64::MAX),
            slow_start,
            saved: None,
            sack: true,
            loss_detection: LossDetection::Rack,
            reduction: Reduction::Prr,
            timestamps: true,
            undo: true,
            tail_loss_probe: true,
            rto: RtoForm::Linux,
            min_rto: Time::from_ms(200),
            max_rto: Time::from_s(120),
            ecn: false,
            accurate_ecn: false,
            ecn_repairs: false,
            ecn_control: false,
            pacing: false,
            burst_segments: 1,
            validation: false,
        }
    }

    /// ns-2's Agent/TCP/Sack1: initial window 2, three duplicate ACKs, the window halved at once.
    pub fn ns2(mss_bytes: u32) -> SenderConfig {
        SenderConfig {
            handshake: false,
            initial_window_segments: 2,
            slow_start: SlowStartKind::Classic,
            loss_detection: LossDetection::DupThresh,
            reduction: Reduction::Immediate,
            timestamps: false,
            undo: false,
            tail_loss_probe: false,
            ecn_repairs: true,
            rto: RtoForm::Ns2,
            max_rto: Time::from_s(60),
            ..SenderConfig::linux(mss_bytes, SlowStartKind::Classic)
        }
    }
}

impl SenderConfig {
    /// Most segments outstanding, from the send buffer (if it has a fixed size) and the receive window.
    pub(crate) fn room(&self) -> u64 {
        match self.send_buffer {
            SendBuffer::Segments(segments) => segments.min(self.receive_window_segments),
            SendBuffer::Autotuned { .. } => self.receive_window_segments,
        }
    }

    /// Most segments before the first ACK, where a handshake told the window.
    pub(crate) fn syn_ack_window(&self) -> u64 {
        if self.handshake {
            u64::from((SYN_ACK_WINDOW_BYTES / self.mss_bytes.max(1)).max(1))
        } else {
            u64::MAX
        }
    }
}

/// The share of payload in a received segment's memory, in 256ths.
pub(crate) fn payload_share(payload_bytes: u64) -> u64 {
    payload_bytes * SHARE / (payload_bytes + SEGMENT_OVERHEAD_BYTES)
}

impl ReceiverConfig {
    /// Segments acknowledged at once when the connection begins.
    pub(crate) fn quick_acks(&self) -> u32 {
        if self.buffer_bytes.is_some() {
            QUICK_ACKS
        } else {
            0
        }
    }

    /// Segments that enlarge the receive window. The window begins at half of the buffer; each segment adds
    /// twice its size, up to the share of payload in a segment's memory.
    pub(crate) fn growing_segments(&self) -> u32 {
        let (Some(buffer), payload) = (self.buffer_bytes, u64::from(self.mss_bytes.max(1))) else { return 0 };
        let growth = buffer / SHARE * payload_share(payload).saturating_sub(SHARE / 2);
        u32::try_from(growth.div_ceil(2 * payload)).unwrap_or(u32::MAX)
    }

    /// Pause after which ACKs are quick again: the receiver's retransmission timeout, from its one RTT
    /// sample.
    pub(crate) fn pause(&self) -> Time {
        match self.buffer_bytes {
            Some(_) => self.rtt_hint + Time::from_ms(200).max(Time(2 * self.rtt_hint.0)),
            None => Time::NEVER,
        }
    }

    /// Today's Linux: quick ACKs at first, then every second segment or 40 ms, SACK compression.
    pub fn linux(rtt_hint: Time, mss_bytes: u32) -> ReceiverConfig {
        ReceiverConfig {
            delayed_ack: true,
            delayed_ack_timeout: Time::from_ms(40),
            buffer_bytes: Some(TUNED_BUFFER_BYTES),
            mss_bytes,
            sack: true,
            dsack: true,
            sack_compression: Some(Time::from_ms(1)),
            rtt_hint,
            ecn: false,
            echo_each_mark: false,
        }
    }

    /// ns-2's Sack1 sink: every segment acknowledged at once.
    pub fn ns2(rtt_hint: Time) -> ReceiverConfig {
        ReceiverConfig {
            delayed_ack: false,
            buffer_bytes: None,
            dsack: false,
            sack_compression: None,
            ..ReceiverConfig::linux(rtt_hint, 1460)
        }
    }
}
