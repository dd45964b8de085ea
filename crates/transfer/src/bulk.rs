//! A flow without a file: sends zeros for a given time, and samples its sender.

use std::sync::atomic::AtomicBool;
use std::sync::Arc;

use lfn_units::Time;
use serde::Serialize;

use crate::connections::each_connection;
use crate::statistics::Tally;
use crate::stream::Clock;
use crate::{Listener, Plan, Stream, TransferError};

/// Packets written between two looks at the clock.
const CHUNK_PACKETS: usize = 8;

/// Bulk transfer of zeros: receiver, plan, limits.
#[derive(Clone, Debug)]
pub struct Bulk {
    /// The receiver, for example `127.0.0.1:9000`.
    pub to: String,
    /// Path, packet sizes and congestion control.
    pub plan: Plan,
    /// Payload to deliver; `None`: until `duration`.
    pub size_bytes: Option<u64>,
    /// Time limit, connection set-up included.
    pub duration: Time,
    /// Interval between samples of the sender.
    pub every: Time,
}

/// A sender at one time; names and units are those of the simulator's table `flows`.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Look {
    /// Time since the request for the connection.
    pub t_s: f64,
    /// The smaller of flow window and congestion window.
    pub cwnd_seg: f64,
    /// Smoothed RTT.
    pub srtt_s: f64,
    /// Packets in flight.
    pub inflight_seg: u64,
    /// Payload acknowledged.
    pub delivered_bytes: u64,
    /// Packets retransmitted.
    pub retransmits: u64,
    /// Timeouts with data in flight.
    pub timeouts: u64,
    /// Whether its loss list is not empty.
    pub repairing: bool,
    /// Pacing rate from its period between packets, in bit/s.
    pub pacing_bps: f64,
    /// NAKs received.
    pub naks: u64,
}

/// Result of a bulk transfer.
#[derive(Clone, Debug, Serialize)]
pub struct Sent {
    /// All samples, in order of time.
    pub looks: Vec<Look>,
    /// Time until the last byte was acknowledged; `None` for a flow without size or not complete.
    pub completion_s: Option<f64>,
}

fn look(stream: &Stream, at: Time, mss_bytes: u32) -> Look {
    let connection = stream.connection();
    let stats = connection.sender_stats();
    Look {
        t_s: at.as_s(),
        cwnd_seg: connection.window_packets() as f64,
        srtt_s: connection.rtt().smoothed.as_s(),
        inflight_seg: connection.in_flight(),
        delivered_bytes: stream.acknowledged_bytes(),
        retransmits: stats.retransmits,
        timeouts: stats.timeouts,
        repairing: connection.repairing() > 0,
        pacing_bps: f64::from(mss_bytes) * 8.0 / connection.period().as_s(),
        naks: stats.naks,
    }
}

/// Sends zeros, and samples the sender's state.
///
/// # Errors
/// If the receiver does not answer, or the connection ends early.
pub fn send_zeros(bulk: &Bulk) -> Result<Sent, TransferError> {
    let mut sent = Sent { looks: Vec::new(), completion_s: None };
    let clock = Clock::start();
    let duration = bulk.duration;
    let mut stream = Stream::connect(&bulk.to, &bulk.plan, move || clock.now() >= duration)?;
    match send(bulk, &mut stream, &mut sent) {
        Ok(()) => sent.completion_s = Some(stream.age().as_s()),
        Err(TransferError::Interrupted) => {}
        Err(error) => return Err(error),
    }
    Ok(sent)
}

fn send(bulk: &Bulk, stream: &mut Stream, sent: &mut Sent) -> Result<(), TransferError> {
    let mut next = Time::ZERO;
    let mut look_at = |stream: &Stream| {
        let now = stream.age();
        if now >= next && now < bulk.duration {
            sent.looks.push(look(stream, now, bulk.plan.mss_bytes));
            next = now + bulk.every;
        }
    };
    let chunk = vec![0; CHUNK_PACKETS * stream.connection().payload_bytes()];
    let mut left = bulk.size_bytes.unwrap_or(u64::MAX);
    while left > 0 {
        look_at(stream);
        let bytes = left.min(chunk.len() as u64);
        stream.write(&chunk[..bytes as usize])?;
        left -= bytes;
    }
    stream.flush()?;
    while stream.connection().released() < stream.connection().offered() {
        look_at(stream);
        stream.pump(true)?;
    }
    sent.looks.push(look(stream, stream.age(), bulk.plan.mss_bytes));
    stream.close()
}

/// Receives and discards the data of every connection, until `stop`.
///
/// # Errors
/// When the socket fails.
pub fn drain(mut listener: Listener, stop: &Arc<AtomicBool>) -> Result<(), TransferError> {
    // A closed connection is the normal end.
    each_connection(&mut listener, false, stop, &mut |_| (), |stream, _| {
        let mut tally = Tally::default();
        loop {
            let bytes = stream.read()?.len();
            if bytes == 0 {
                return Ok(tally.finish(stream, None));
            }
            stream.consume(bytes)?;
            tally.done_bytes += bytes as u64;
        }
    })
}
