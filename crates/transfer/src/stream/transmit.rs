//! Packets that leave: trains of data, and control packets.

use std::io;

use lfn_udt::{data_header, Body, Transmit};
use lfn_units::Time;

use super::{Stream, QUANTUM};
use crate::secure::SEAL_BYTES;
use crate::socket::MAX_SEGMENTS;

impl Stream {
    pub(super) fn transmit(&mut self, now: Time) -> io::Result<()> {
        // First and last packet of a train that waits for its next one.
        let mut train: Option<(u64, u64)> = None;
        let mut measured = false;
        let most = MAX_SEGMENTS as u64;
        while let Some(transmit) = self.connection.poll_transmit(now) {
            match transmit {
                Transmit::Control(packet) => {
                    self.control.clear();
                    packet.encode(&mut self.control);
                    let Some(secure) = &mut self.secure else {
                        self.socket.send(&self.control, usize::MAX)?;
                        continue;
                    };
                    self.sealed.clear();
                    let is_handshake = matches!(packet.body, Body::Handshake(_));
                    secure.seal(&self.control, is_handshake, &mut self.sealed);
                    if !self.sealed.is_empty() {
                        self.socket.send(&self.sealed, usize::MAX)?;
                    }
                }
                Transmit::Data(data, packet) => {
                    self.busy = Some(QUANTUM);
                    let Body::Data { seq, boundary, in_order, message, .. } = packet.body else { continue };
                    let (time, to) = (packet.timestamp_us, packet.destination);
                    let header = data_header(seq, boundary, in_order, message, time, to);
                    self.outgoing.set_header(data.index, header);
                    train = match train {
                        Some(train @ (first, last))
                            if data.index == last + 1
                                && data.index - first < most
                                && self.outgoing.follows(train, data.index) =>
                        {
                            Some((first, data.index))
                        }
                        Some(done) => {
                            self.send_train(done)?;
                            Some((data.index, data.index))
                        }
                        None => Some((data.index, data.index)),
                    };
                    // The second of a pair begins a train, so that its distance can be measured: once in a
                    // burst, since short trains cost.
                    if seq.get().is_multiple_of(16) && !std::mem::replace(&mut measured, true) {
                        if let Some(done) = train.take() {
                            self.send_train(done)?;
                        }
                    }
                }
            }
        }
        train.map_or(Ok(()), |done| self.send_train(done))
    }

    fn send_train(&mut self, (first, last): (u64, u64)) -> io::Result<()> {
        let (bytes, size) = self.outgoing.train(first, last);
        let Some(secure) = &mut self.secure else { return self.socket.send(bytes, size) };
        self.sealed.clear();
        for packet in bytes.chunks(size) {
            secure.seal(packet, false, &mut self.sealed);
        }
        self.socket.send(&self.sealed, size + SEAL_BYTES)
    }
}
