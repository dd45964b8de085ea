//! A connected UDP socket: several datagrams in one call with UDP_SEGMENT and UDP_GRO, and arrival times with
//! SO_TIMESTAMPNS, if the kernel has them.

use std::io;
use std::mem::{size_of, zeroed};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

use lfn_units::Time;
use libc::{c_int, c_void, cmsghdr, iovec, mmsghdr, msghdr, socklen_t};

use crate::plan::is_ipv6;

/// The most datagrams in one train (UDP_MAX_SEGMENTS), and bytes in one message.
pub(crate) const MAX_SEGMENTS: usize = 64;
pub(crate) const MAX_TRAIN_BYTES: usize = 65_000;
/// Messages taken in one call.
const MESSAGES: usize = 8;
const MESSAGE_BYTES: usize = 65_536;
/// No path has a smaller MTU, whatever the kernel was told: every host of IPv4 receives packets of this size.
const LEAST_MTU_BYTES: usize = 576;
/// Every link of IPv6 carries packets of this size, and nearly every path of IPv4.
const SAFE_MTU_BYTES: usize = 1280;
/// Room for control messages with an integer and a time, aligned as the kernel wants it.
type ControlRoom = [u64; 8];
/// Largest credible age of a packet's timestamp; an older one means that the clock was set meanwhile.
const MAX_AGE: Time = Time::from_s(1);

/// Attempts to send a datagram that is answered with the error of an earlier one.
const ATTEMPTS: usize = 3;

/// A connected socket: the kernel drops datagrams from other addresses.
pub(crate) struct Socket {
    udp: UdpSocket,
    segments: bool,
    buffers: Vec<u8>,
    refusals: u32,
    /// Bytes of the headers of IP and UDP.
    header_bytes: usize,
    /// Level and option of the path's MTU.
    mtu_option: (c_int, c_int),
    /// The path's MTU as the kernel knows it, and whether that may have changed.
    mtu_bytes: usize,
    is_mtu_stale: bool,
    /// No packet is larger, whatever the kernel says.
    most_bytes: usize,
}

fn set(socket: &UdpSocket, level: c_int, option: c_int, value: c_int) -> io::Result<()> {
    let length = size_of::<c_int>() as socklen_t;
    let pointer: *const c_int = &value;
    // SAFETY: the pointer and the length are those of a living integer.
    let done = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, pointer.cast(), length) };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

fn get(socket: &UdpSocket, level: c_int, option: c_int) -> io::Result<usize> {
    let (mut value, mut length): (c_int, _) = (0, size_of::<c_int>() as socklen_t);
    let pointer: *mut c_int = &mut value;
    // SAFETY: the pointers are those of living integers.
    let done = unsafe { libc::getsockopt(socket.as_raw_fd(), level, option, pointer.cast(), &mut length) };
    if done == 0 {
        Ok(value as usize)
    } else {
        Err(io::Error::last_os_error())
    }
}

/// A socket at `local` that others of this user may share: the listener, and one for each connection, to
/// which the kernel gives what comes from its peer.
pub(crate) fn bind_shared(local: SocketAddr) -> io::Result<UdpSocket> {
    let family = if local.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    // SAFETY: creates a descriptor, which the socket then owns.
    let descriptor = unsafe { libc::socket(family, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and has no other owner.
    let socket = unsafe { <UdpSocket as std::os::fd::FromRawFd>::from_raw_fd(descriptor) };
    set(&socket, libc::SOL_SOCKET, libc::SO_REUSEPORT, 1)?;
    // SAFETY: all zeros are a valid address of each family.
    let (mut v4, mut v6) = unsafe { (zeroed::<libc::sockaddr_in>(), zeroed::<libc::sockaddr_in6>()) };
    let (address, length): (*const libc::sockaddr, usize) = match local {
        SocketAddr::V4(local) => {
            v4.sin_family = libc::AF_INET as u16;
            v4.sin_port = local.port().to_be();
            v4.sin_addr.s_addr = u32::from_ne_bytes(local.ip().octets());
            ((&raw const v4).cast(), size_of::<libc::sockaddr_in>())
        }
        SocketAddr::V6(local) => {
            v6.sin6_family = libc::AF_INET6 as u16;
            v6.sin6_port = local.port().to_be();
            v6.sin6_addr.s6_addr = local.ip().octets();
            v6.sin6_scope_id = local.scope_id();
            ((&raw const v6).cast(), size_of::<libc::sockaddr_in6>())
        }
    };
    // SAFETY: the address lives, and has the length given.
    if unsafe { libc::bind(descriptor, address, length as socklen_t) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(socket)
}

impl Socket {
    /// Takes a connected socket, and asks for buffers of `bytes`.
    pub fn new(udp: UdpSocket, bytes: usize) -> io::Result<Socket> {
        let header_bytes = if is_ipv6(udp.peer_addr()?.ip()) { 48 } else { 28 };
        // The path's MTU is discovered, and what was made before and is larger leaves in fragments.
        set(&udp, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_WANT)?;
        let mut mtu_option = (libc::IPPROTO_IP, libc::IP_MTU);
        if udp.local_addr()?.is_ipv6() {
            set(&udp, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_WANT)?;
            mtu_option = (libc::IPPROTO_IPV6, libc::IPV6_MTU);
        }
        for (force, ask) in [(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF), (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)]
        {
            // The first needs CAP_NET_ADMIN; the second gives what net.core.[rw]mem_max allows.
            set(&udp, libc::SOL_SOCKET, force, bytes as c_int)
                .or_else(|_| set(&udp, libc::SOL_SOCKET, ask, bytes as c_int))?;
        }
        let segments = set(&udp, libc::SOL_UDP, libc::UDP_GRO, 1).is_ok();
        // Without SO_TIMESTAMPNS the arrival time is the time of the call.
        let _ = set(&udp, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1);
        let mut socket = Socket {
            udp,
            segments,
            buffers: vec![0; MESSAGES * MESSAGE_BYTES],
            refusals: 0,
            header_bytes,
            mtu_option,
            mtu_bytes: usize::MAX,
            is_mtu_stale: true,
            most_bytes: usize::MAX,
        };
        socket.look_at_path();
        Ok(socket)
    }

    /// Asks the kernel for the path's MTU: it learns it from its own links and from ICMP. Where it has none to tell,
    /// the last one holds.
    pub fn look_at_path(&mut self) -> u32 {
        self.is_mtu_stale = false;
        let (level, option) = self.mtu_option;
        if let Ok(bytes) = get(&self.udp, level, option) {
            self.mtu_bytes = bytes.clamp(LEAST_MTU_BYTES, self.most_bytes);
        }
        u32::try_from(self.mtu_bytes).unwrap_or(u32::MAX)
    }

    /// Large packets get lost on the path without a word. New ones are small; over IPv4, routers may make fragments of
    /// older ones.
    pub fn avoid_large_packets(&mut self) {
        self.most_bytes = SAFE_MTU_BYTES;
        // If the kernel refuses, only new packets get through.
        let _ = set(&self.udp, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DONT);
    }

    /// Whether a message said that a packet was too large for the path.
    pub fn is_mtu_stale(&self) -> bool {
        self.is_mtu_stale
    }

    /// Whether a datagram of `bytes` of UDP payload is one packet on the path.
    fn fits(&self, bytes: usize) -> bool {
        bytes + self.header_bytes <= self.mtu_bytes
    }

    /// Receive buffer of the kernel in bytes: it grants twice the request, for its overhead.
    pub fn receive_buffer_bytes(&self) -> io::Result<usize> {
        Ok(get(&self.udp, libc::SOL_SOCKET, libc::SO_RCVBUF)? / 2)
    }

    /// Sends datagrams of `size` bytes, of which the last may be shorter.
    pub fn send(&mut self, train: &[u8], size: usize) -> io::Result<()> {
        if self.segments && train.len() > size && self.fits(size) {
            match self.send_segments(train, size as u16) {
                Err(error) if error.raw_os_error() == Some(libc::EMSGSIZE) => self.is_mtu_stale = true,
                Err(error) if matches!(error.raw_os_error(), Some(libc::EIO | libc::EINVAL)) => {
                    self.look_at_path();
                    self.is_mtu_stale = true;
                    // This interface cannot: send datagrams one by one from now on.
                    self.segments = !self.fits(size);
                }
                done => return self.ignore_unreachable(done),
            }
        }
        for datagram in train.chunks(size) {
            self.send_one(datagram)?;
        }
        Ok(())
    }

    /// The kernel makes fragments of a datagram that is larger than the path's MTU. "Message too long" is about an
    /// earlier one, and this one has not left.
    fn send_one(&mut self, datagram: &[u8]) -> io::Result<()> {
        for _ in 0..ATTEMPTS {
            match self.udp.send(datagram).map(drop) {
                Err(error) if error.raw_os_error() == Some(libc::EMSGSIZE) => self.is_mtu_stale = true,
                done => return self.ignore_unreachable(done),
            }
        }
        Ok(())
    }

    /// Takes the number of "port unreachable" errors since the last call.
    pub fn take_refusals(&mut self) -> u32 {
        std::mem::take(&mut self.refusals)
    }

    /// Ignores errors that do not end a connection: no listener at the port (the connection's timers detect
    /// that), a packet that was too large for the path, and a path or a local queue that is unavailable for a while.
    fn ignore_unreachable(&mut self, done: io::Result<()>) -> io::Result<()> {
        match done.as_ref().err().and_then(io::Error::raw_os_error) {
            Some(libc::ECONNREFUSED) => self.refusals += 1,
            Some(libc::EMSGSIZE) => self.is_mtu_stale = true,
            Some(
                libc::EHOSTUNREACH
                | libc::ENETUNREACH
                | libc::ENETDOWN
                | libc::ENOBUFS
                | libc::EPERM
                | libc::EAGAIN
                | libc::EINTR,
            ) => {}
            _ => return done,
        }
        Ok(())
    }

    fn send_segments(&self, train: &[u8], size: u16) -> io::Result<()> {
        let mut room: ControlRoom = [0; 8];
        let mut part = iovec { iov_base: train.as_ptr() as *mut c_void, iov_len: train.len() };
        // SAFETY: all zeros are a valid header; what it points to lives through the call; the control message
        // has the room that CMSG_SPACE asks for, and the kernel only reads.
        unsafe {
            let mut header: msghdr = zeroed();
            header.msg_iov = &mut part;
            header.msg_iovlen = 1;
            header.msg_control = room.as_mut_ptr().cast();
            header.msg_controllen = libc::CMSG_SPACE(size_of::<u16>() as u32) as usize;
            let control = libc::CMSG_FIRSTHDR(&header);
            (*control).cmsg_level = libc::SOL_UDP;
            (*control).cmsg_type = libc::UDP_SEGMENT;
            (*control).cmsg_len = libc::CMSG_LEN(size_of::<u16>() as u32) as usize;
            libc::CMSG_DATA(control).cast::<u16>().write_unaligned(size);
            if libc::sendmsg(self.udp.as_raw_fd(), &header, 0) < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    }

    /// Receives without waiting; calls `take` with each datagram and its age. Returns whether there may be
    /// more.
    pub fn receive(&mut self, mut take: impl FnMut(&mut [u8], Time)) -> io::Result<bool> {
        let mut rooms: [ControlRoom; MESSAGES] = [[0; 8]; MESSAGES];
        // SAFETY: all zeros are valid here.
        let (mut parts, mut messages) =
            unsafe { (zeroed::<[iovec; MESSAGES]>(), zeroed::<[mmsghdr; MESSAGES]>()) };
        for (at, buffer) in self.buffers.chunks_exact_mut(MESSAGE_BYTES).enumerate() {
            parts[at] = iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
            messages[at].msg_hdr.msg_iov = &mut parts[at];
            messages[at].msg_hdr.msg_iovlen = 1;
            messages[at].msg_hdr.msg_control = rooms[at].as_mut_ptr().cast();
            messages[at].msg_hdr.msg_controllen = size_of::<ControlRoom>();
        }
        // SAFETY: every pointer is to memory that lives through the call and has the length given.
        let count = unsafe {
            let (descriptor, flags) = (self.udp.as_raw_fd(), libc::MSG_DONTWAIT);
            libc::recvmmsg(descriptor, messages.as_mut_ptr(), MESSAGES as u32, flags, std::ptr::null_mut())
        };
        if count < 0 {
            return match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
                error => self.ignore_unreachable(Err(error)).map(|()| false),
            };
        }
        let taken = time_of_day();
        for (message, buffer) in
            messages[..count as usize].iter().zip(self.buffers.chunks_exact_mut(MESSAGE_BYTES))
        {
            let bytes = &mut buffer[..message.msg_len as usize];
            let Told { segment_bytes, came } = told(&message.msg_hdr);
            let age = came.map_or(Time::ZERO, |came| age(came, taken));
            bytes.chunks_mut(segment_bytes).for_each(|datagram| take(datagram, age));
        }
        Ok(count as usize == MESSAGES)
    }
}

impl std::os::fd::AsFd for Socket {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.udp.as_fd()
    }
}

/// Control messages of the kernel with a received message.
struct Told {
    /// Size of the datagrams that GRO joined, in bytes.
    segment_bytes: usize,
    /// Arrival time, by the time-of-day clock.
    came: Option<Time>,
}

fn told(header: &msghdr) -> Told {
    let mut told = Told { segment_bytes: MESSAGE_BYTES, came: None };
    // SAFETY: the kernel filled in the header and the control messages that it points to.
    unsafe {
        let mut control: *const cmsghdr = libc::CMSG_FIRSTHDR(header);
        while let Some(message) = control.as_ref() {
            let data = libc::CMSG_DATA(control);
            match (message.cmsg_level, message.cmsg_type) {
                (libc::SOL_UDP, libc::UDP_GRO) => {
                    let bytes = usize::try_from(data.cast::<c_int>().read_unaligned()).unwrap_or(0);
                    told.segment_bytes = if bytes > 0 { bytes } else { MESSAGE_BYTES };
                }
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                    told.came = Some(time(&data.cast::<libc::timespec>().read_unaligned()));
                }
                _ => {}
            }
            control = libc::CMSG_NXTHDR(header, control);
        }
    }
    told
}

/// The kernel's clock for arrival times.
fn time_of_day() -> Time {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    time(&libc::timespec { tv_sec: now.tv_sec, tv_nsec: now.tv_nsec })
}

/// How long ago a packet came. Both times are of the wall clock, which may be set in between: an age that cannot be is
/// none.
fn age(came: Time, taken: Time) -> Time {
    let age = Time(taken.0.wrapping_sub(came.0));
    if age <= MAX_AGE {
        age
    } else {
        Time::ZERO
    }
}

/// Modulo 2^64 picoseconds: only differences count.
fn time(at: &libc::timespec) -> Time {
    let ns = (at.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(at.tv_nsec as u64);
    Time(ns.wrapping_mul(1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_makes_no_packet_old() {
        let at = |s: i64| time(&libc::timespec { tv_sec: s, tv_nsec: 999_999_999 });
        let now = 1_795_600_000;
        assert_eq!(age(at(now), Time(at(now).0.wrapping_add(3_000_000))), Time(3_000_000));
        for step_s in [-3_000_000_000, -3600, -1, 2, 3600, 3_000_000_000] {
            assert_eq!(age(at(now), at(now + step_s)), Time::ZERO, "{step_s} s");
        }
        assert_eq!(age(Time(u64::MAX - 9), Time(10)), Time(20), "picoseconds go round");
    }
}
