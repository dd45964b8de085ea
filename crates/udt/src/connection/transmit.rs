//! Packets that a connection sends, and their times.

use std::net::IpAddr;
use std::ops::Range;

use lfn_units::Time;

use super::{Connecting, Connection};
use crate::config::{Kind, State, Transmit};
use crate::packet::{Body, Handshake, Packet, Request, VERSION};
use crate::sender::Outgoing;
use crate::LossReport;

/// Between two requests for a connection.
const CONNECT_RETRY: Time = Time::from_ms(250);

impl Connection {
    /// The packets to send now, one per call, until `None`.
    #[inline]
    pub fn poll_transmit(&mut self, now: Time) -> Option<Transmit<'_>> {
        match self.state {
            State::Connected | State::Closing => {}
            State::Connecting => return self.poll_request(now),
            State::Closed(_) => {
                return std::mem::take(&mut self.shutdown).then(|| self.control_packet(now, Body::Shutdown));
            }
        }
        if std::mem::take(&mut self.answer_handshake) {
            let answer = self.handshake(Request::RESPONSE, 0);
            return Some(self.control_packet(now, Body::Handshake(answer)));
        }
        if let Some(number) = self.ack2.take() {
            self.last_ack2 = Some((number, now));
            return Some(self.control_packet(now, Body::Ack2 { number }));
        }
        if let Some(ack) = self.receiver.take_ack(now, &self.rtt, self.allowed.ack_interval_packets) {
            let next = self.numbering.wire(ack.next);
            let body = Body::Ack { number: ack.number, next, report: ack.report };
            return Some(self.control_packet(now, body));
        }
        if let Some(range) = self.receiver.next_nak() {
            return Some(self.nak(now, range));
        }
        if self.config.kind == Kind::Message {
            if let Some(dropped) = self.sender.take_dropped(now, self.allowed.window_packets) {
                let Range { start, end } = dropped.packets;
                let (first, end) = (self.numbering.wire(start), self.numbering.wire(end));
                let body = Body::Drop { message: dropped.message, first, end };
                return Some(self.control_packet(now, body));
            }
        }
        if std::mem::take(&mut self.keep_alive) {
            return Some(self.control_packet(now, Body::KeepAlive));
        }
        if let Some(code) = self.error.take() {
            return Some(self.control_packet(now, Body::PeerError { code }));
        }
        self.poll_data(now)
    }

    fn poll_request(&mut self, now: Time) -> Option<Transmit<'_>> {
        let connecting = self.connecting.as_mut().filter(|connecting| now >= connecting.next_request)?;
        connecting.next_request = now + CONNECT_RETRY;
        let Connecting { request, cookie, .. } = *connecting;
        let handshake = self.handshake(request, cookie);
        Some(self.control_packet(now, Body::Handshake(handshake)))
    }

    fn nak(&mut self, now: Time, first: Range<u64>) -> Transmit<'_> {
        self.words.clear();
        let most = self.path_payload_bytes() - 4;
        let mut range = Some(first);
        while let Some(Range { start, end }) = range {
            LossReport::push(&mut self.words, self.numbering.wire(start), self.numbering.wire(end - 1));
            range = if self.words.len() < most { self.receiver.next_nak() } else { None };
        }
        self.receiver.stats.naks += 1;
        let report = LossReport::parse(&self.words).expect("whole ranges were pushed");
        self.control_packet(now, Body::Nak(report))
    }

    #[inline]
    fn poll_data(&mut self, now: Time) -> Option<Transmit<'_>> {
        if now < self.next_send || now < self.allowed.silent_until {
            return None;
        }
        let outgoing = self.sender.take(self.allowed.window_packets)?;
        self.control.on_sent(outgoing.index, &self.path(now));
        let seq = self.numbering.wire(outgoing.index);
        // The first of a pair: the second follows at once, and measures the path's capacity.
        if !seq.get().is_multiple_of(16) {
            let since = Time(now.0.saturating_sub(self.config.catch_up.0));
            self.next_send = self.next_send.max(since).after(self.period());
        }
        let Outgoing { boundary, in_order, message, .. } = outgoing;
        let body = Body::Data { seq, boundary, in_order, message, payload: &[] };
        let packet = Packet { timestamp_us: self.timestamp_us(now), destination: self.peer_socket, body };
        Some(Transmit::Data(outgoing, packet))
    }

    fn handshake(&self, request: Request, cookie: u32) -> Handshake {
        let mut peer_ip = [0; 4];
        match self.peer.ip() {
            IpAddr::V4(ip) => peer_ip[0] = u32::from_le_bytes(ip.octets()),
            IpAddr::V6(ip) => {
                for (word, octets) in peer_ip.iter_mut().zip(ip.octets().chunks_exact(4)) {
                    *word = u32::from_le_bytes([octets[0], octets[1], octets[2], octets[3]]);
                }
            }
        }
        Handshake {
            version: VERSION,
            kind: self.config.kind as u32,
            initial: self.numbering.initial(),
            mss_bytes: self.mss_bytes,
            window_packets: self.config.window_packets,
            request,
            socket: self.socket,
            cookie,
            peer_ip,
        }
    }

    fn timestamp_us(&self, now: Time) -> u32 {
        ((now - self.began).0 / 1_000_000) as u32
    }

    fn control_packet<'a>(&self, now: Time, body: Body<'a>) -> Transmit<'a> {
        Transmit::Control(Packet {
            timestamp_us: self.timestamp_us(now),
            destination: self.peer_socket,
            body,
        })
    }
}
