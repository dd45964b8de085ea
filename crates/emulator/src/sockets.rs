//! The TCP sockets of a network namespace, by sock_diag(7).

use std::fs::File;
use std::io::{Read, Write};
use std::net::Ipv4Addr;

use crate::error::EmulatorError;
use crate::process;

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_DUMP: u16 = 0x300;
const NLMSG_DONE: u16 = 3;
const NLMSG_ERROR: u16 = 2;
const INET_DIAG_INFO: u16 = 2;
const ESTABLISHED: u32 = 1 << 1;
/// struct nlmsghdr, inet_diag_req_v2 and inet_diag_msg (linux/inet_diag.h), nlattr.
const HEADER_BYTES: usize = 16;
const REQUEST_BYTES: usize = 56;
const MESSAGE_BYTES: usize = 72;
/// struct inet_diag_sockid, behind four bytes of a message.
const ID_AT: usize = 4;
const ID_BYTES: usize = 48;
const ATTRIBUTE_BYTES: usize = 4;
/// Of struct tcp_info (linux/tcp.h): tcpi_rtt, tcpi_snd_cwnd, tcpi_bytes_acked.
const RTT_AT: usize = 68;
const CWND_AT: usize = 80;
const ACKED_AT: usize = 120;
const BUFFER_BYTES: usize = 32_768;

/// A socket that sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sender {
    pub(crate) acked_bytes: u64,
    pub(crate) rtt_us: u32,
    /// Segments.
    pub(crate) cwnd: u32,
    /// Ports, addresses and cookie, as the kernel writes them.
    pub(crate) id: [u8; ID_BYTES],
}

/// The sockets of the namespace in which this was made.
pub(crate) struct Sockets {
    netlink: File,
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

impl Sockets {
    pub(crate) fn new() -> Result<Sockets, EmulatorError> {
        Ok(Sockets { netlink: File::from(process::netlink(libc::NETLINK_SOCK_DIAG, "sock_diag")?) })
    }

    /// The socket between these addresses of which most bytes were acknowledged. The kernel visits the whole
    /// hash table of its sockets for this, up to a millisecond in which no other process has this processor.
    pub(crate) fn largest_sender(&mut self, addresses: [Ipv4Addr; 2]) -> Option<Sender> {
        let mut largest: Option<Sender> = None;
        self.ask(NLM_F_REQUEST | NLM_F_DUMP, [0; ID_BYTES], |message| {
            if let Some(sender) = sender(message, addresses) {
                largest = largest.filter(|known| known.acked_bytes >= sender.acked_bytes).or(Some(sender));
            }
        })?;
        largest
    }

    /// The same socket later, if it still exists. This costs microseconds.
    pub(crate) fn again(&mut self, before: &Sender, addresses: [Ipv4Addr; 2]) -> Option<Sender> {
        let mut now = None;
        self.ask(NLM_F_REQUEST, before.id, |message| now = sender(message, addresses))?;
        now
    }

    /// Asks for one socket, or with NLM_F_DUMP for all. `None` if there is no answer, or an error.
    fn ask(&mut self, flags: u16, id: [u8; ID_BYTES], mut take: impl FnMut(&[u8])) -> Option<()> {
        let mut request = Vec::with_capacity(HEADER_BYTES + REQUEST_BYTES);
        request.extend(((HEADER_BYTES + REQUEST_BYTES) as u32).to_ne_bytes());
        request.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
        request.extend(flags.to_ne_bytes());
        request.extend([0; 8]);
        request.extend([libc::AF_INET as u8, libc::IPPROTO_TCP as u8, 1 << (INET_DIAG_INFO - 1), 0]);
        request.extend(ESTABLISHED.to_ne_bytes());
        request.extend(id);
        self.netlink.write_all(&request).ok()?;
        let mut buffer = vec![0; BUFFER_BYTES];
        loop {
            let length = self.netlink.read(&mut buffer).ok().filter(|&length| length > 0)?;
            let mut rest = &buffer[..length];
            while let Some((kind, message, after)) = next_message(rest) {
                match kind {
                    NLMSG_DONE => return Some(()),
                    NLMSG_ERROR => return None,
                    _ => take(message),
                }
                rest = after;
            }
            if flags & NLM_F_DUMP == 0 {
                return Some(());
            }
        }
    }
}

/// Kind and content of the first message, and what follows it.
fn next_message(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = u32_at(bytes, 0)? as usize;
    let content = bytes.get(HEADER_BYTES..length)?;
    let aligned = length.next_multiple_of(4).min(bytes.len());
    Some((u16_at(bytes, 4)?, content, &bytes[aligned..]))
}

/// The socket of a message, if it is one between these addresses.
fn sender(message: &[u8], addresses: [Ipv4Addr; 2]) -> Option<Sender> {
    // struct inet_diag_sockid follows four bytes: ports, then each address in 16 bytes.
    let address = |at: usize| Some(Ipv4Addr::from(<[u8; 4]>::try_from(message.get(at..at + 4)?).ok()?));
    if !(addresses.contains(&address(8)?) && addresses.contains(&address(24)?)) {
        return None;
    }
    let mut rest = message.get(MESSAGE_BYTES..)?;
    loop {
        let length = usize::from(u16_at(rest, 0)?);
        let content = rest.get(ATTRIBUTE_BYTES..length)?;
        if u16_at(rest, 2)? == INET_DIAG_INFO {
            let acked = content.get(ACKED_AT..ACKED_AT + 8)?.try_into().ok()?;
            return Some(Sender {
                acked_bytes: u64::from_ne_bytes(acked),
                rtt_us: u32_at(content, RTT_AT)?,
                cwnd: u32_at(content, CWND_AT)?,
                id: message.get(ID_AT..ID_AT + ID_BYTES)?.try_into().ok()?,
            });
        }
        rest = rest.get(length.next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    const LOOPBACK: [Ipv4Addr; 2] = [Ipv4Addr::LOCALHOST; 2];

    #[test]
    fn the_socket_that_sent_the_most_is_found() {
        let listener = TcpListener::bind("127.0.0.7:0").unwrap();
        let ours = [Ipv4Addr::new(127, 0, 0, 7), Ipv4Addr::LOCALHOST];
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        near.write_all(&[7; 10_000]).unwrap();
        far.read_exact(&mut [0; 10_000]).unwrap();
        let mut sockets = Sockets::new().unwrap();
        // The last ACK may be on its way.
        let found = (0..100).find_map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            sockets.largest_sender(ours).filter(|sender| sender.acked_bytes >= 10_000)
        });
        let found = found.unwrap();
        assert!((10_000..10_010).contains(&found.acked_bytes), "{found:?}");
        assert!(found.cwnd >= 1 && found.rtt_us > 0, "{found:?}");
        assert_eq!(sockets.again(&found, ours), Some(found));
        assert_eq!(sockets.largest_sender([Ipv4Addr::new(198, 18, 0, 1); 2]), None);
        let other = Sender { id: [7; ID_BYTES], ..found };
        assert_eq!(sockets.again(&other, ours), None);
        // An answer is complete: the next one is not that of the question before.
        assert_eq!(sockets.again(&found, ours), Some(found));
    }

    #[test]
    fn a_message_that_is_cut_is_no_socket() {
        let mut message = vec![0; MESSAGE_BYTES];
        message[8..12].copy_from_slice(&[127, 0, 0, 1]);
        message[24..28].copy_from_slice(&[127, 0, 0, 1]);
        let content = ACKED_AT + 8;
        message.extend(((ATTRIBUTE_BYTES + content) as u16).to_ne_bytes());
        message.extend(INET_DIAG_INFO.to_ne_bytes());
        message.resize(message.len() + content, 0);
        assert!(sender(&message, LOOPBACK).is_some());
        for length in 0..message.len() {
            assert_eq!(sender(&message[..length], LOOPBACK), None, "{length}");
        }
        for length in [0, 1, 3] {
            let mut wrong = message.clone();
            wrong[MESSAGE_BYTES] = length;
            wrong[MESSAGE_BYTES + 1] = 0;
            assert_eq!(sender(&wrong, LOOPBACK), None);
        }
        assert!(next_message(&[]).is_none());
        assert!(next_message(&[5, 0, 0, 0, 3, 0]).is_none());
    }
}
