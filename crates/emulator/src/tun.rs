//! A TUN device: an interface of the network namespace in which it is made, whose packets this process
//! reads and writes. It is gone when its descriptor is closed, by whatever end of the process.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, Read, Seek, Write};
use std::mem::zeroed;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;

use libc::{c_char, c_ulong, ifreq, sockaddr_in};

use crate::burst::BURST_MAX_BYTES;
use crate::error::EmulatorError;
use crate::process;

/// Bursts that the kernel keeps for us until we read them; more are dropped, and counted.
const QUEUE_BURSTS: i32 = 10_000;
const DEVICE: &str = "/dev/net/tun";

/// An interface, its packets, and the kernel's count of those that were lost on the way to or from us.
pub(crate) struct Tun {
    file: File,
    /// /proc/net/dev of its namespace.
    counters: File,
    name: String,
}

fn request(name: &str) -> ifreq {
    // SAFETY: all zeros are a valid request.
    let mut request: ifreq = unsafe { zeroed() };
    for (to, &from) in request.ifr_name.iter_mut().zip(name.as_bytes().iter().take(15)) {
        *to = from as c_char;
    }
    request
}

fn name_of(request: &ifreq) -> String {
    request.ifr_name.iter().take_while(|&&byte| byte != 0).map(|&byte| byte as u8 as char).collect()
}

/// A call for an interface of this namespace.
fn control(what: &str, operation: c_ulong, request: &mut ifreq) -> Result<(), EmulatorError> {
    // SAFETY: makes a descriptor, which the owner then closes.
    let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if socket < 0 {
        return Err(EmulatorError::last("socket", ""));
    }
    // SAFETY: the descriptor is new and has no other owner.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    // SAFETY: the request lives and is what each of these operations takes.
    if unsafe { libc::ioctl(socket.as_raw_fd(), operation as _, std::ptr::from_mut(request)) } < 0 {
        return Err(EmulatorError::last(format!("{what} of {}", name_of(request)), ""));
    }
    Ok(())
}

fn raise(name: &str) -> Result<(), EmulatorError> {
    let mut request = request(name);
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as i16;
    control("going up", libc::SIOCSIFFLAGS as c_ulong, &mut request)
}

/// Brings up the loopback of this namespace.
pub(crate) fn raise_loopback() -> Result<(), EmulatorError> {
    raise("lo")
}

fn internet(address: Ipv4Addr) -> libc::sockaddr {
    // SAFETY: all zeros are a valid address, and one of IPv4 has the size of the general one.
    unsafe {
        let mut internet: sockaddr_in = zeroed();
        internet.sin_family = libc::AF_INET as u16;
        internet.sin_addr.s_addr = u32::from(address).to_be();
        std::mem::transmute::<sockaddr_in, libc::sockaddr>(internet)
    }
}

/// The kernel sends each segment over this interface by itself, when TCP may send it (rtnetlink(7)): without
/// offloads it would still gather segments, and part them just before the interface.
fn send_singly(name: &str) -> Result<(), EmulatorError> {
    const HEADER_BYTES: usize = 16;
    const MESSAGE_BYTES: usize = HEADER_BYTES + 24;
    let failed = |error| EmulatorError::os(format!("gso_max_segs of {name}"), "")(error);
    let known = CString::new(name).map_err(|error| failed(error.into()))?;
    // SAFETY: a string that ends with 0.
    let index = unsafe { libc::if_nametoindex(known.as_ptr()) };
    let mut message = Vec::with_capacity(MESSAGE_BYTES);
    message.extend((MESSAGE_BYTES as u32).to_ne_bytes());
    message.extend(libc::RTM_NEWLINK.to_ne_bytes());
    message.extend(((libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16).to_ne_bytes());
    message.extend([0; 8]);
    // struct ifinfomsg, then one attribute.
    message.extend([0; 4]);
    message.extend(index.to_ne_bytes());
    message.extend([0; 8]);
    message.extend(8u16.to_ne_bytes());
    message.extend(libc::IFLA_GSO_MAX_SEGS.to_ne_bytes());
    message.extend(1u32.to_ne_bytes());
    let mut netlink = File::from(process::netlink(libc::NETLINK_ROUTE, "rtnetlink")?);
    netlink.write_all(&message).map_err(failed)?;
    let mut answer = [0; HEADER_BYTES + MESSAGE_BYTES + 4];
    let length = netlink.read(&mut answer).map_err(failed)?;
    // struct nlmsgerr: 0, or a negative error.
    match answer[..length].get(HEADER_BYTES..).and_then(|rest| rest.first_chunk()) {
        Some(&error) if error == [0; 4] => Ok(()),
        Some(&error) => Err(failed(io::Error::from_raw_os_error(-i32::from_ne_bytes(error)))),
        None => Err(failed(io::ErrorKind::UnexpectedEof.into())),
    }
}

impl Tun {
    /// A new interface of this namespace, up, with an address in a network of `prefix` bits. With `offload` the
    /// kernel may send several segments in one.
    ///
    /// # Errors
    /// [`EmulatorError::Os`] says what is missing.
    pub(crate) fn new(
        address: Ipv4Addr,
        prefix: u8,
        mtu_bytes: u32,
        offload: bool,
    ) -> Result<Tun, EmulatorError> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open(DEVICE)
            .map_err(EmulatorError::os(
                DEVICE,
                "; load TUN (modprobe tun), or let users open it (chmod a+rw /dev/net/tun, as root)",
            ))?;
        let mut request = request("lfn%d");
        request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as i16;
        let offloads = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6;
        // SAFETY: the request lives and is what the operation takes.
        if unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) } < 0 {
            return Err(EmulatorError::last("a TUN interface", "; needs CAP_NET_ADMIN in this namespace"));
        }
        // SAFETY: the operation takes an integer.
        if unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETOFFLOAD, c_ulong::from(offloads)) } < 0 {
            return Err(EmulatorError::last("offloads of a TUN interface", ""));
        }
        let name = name_of(&request);
        // Only requested packets cross the path; where there is no IPv6 there is none to silence.
        drop(std::fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1"));
        let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
        request.ifr_ifru.ifru_addr = internet(address);
        control("the address", libc::SIOCSIFADDR as c_ulong, &mut request)?;
        request.ifr_ifru.ifru_addr = internet(Ipv4Addr::from(mask));
        control("the netmask", libc::SIOCSIFNETMASK as c_ulong, &mut request)?;
        request.ifr_ifru.ifru_mtu = mtu_bytes as i32;
        control("the MTU", libc::SIOCSIFMTU as c_ulong, &mut request)?;
        request.ifr_ifru.ifru_metric = QUEUE_BURSTS;
        // Only root outside of all user namespaces may; elsewhere 500 must do.
        drop(control("the queue", libc::SIOCSIFTXQLEN, &mut request));
        if !offload {
            send_singly(&name)?;
        }
        raise(&name)?;
        let counters = File::open("/proc/thread-self/net/dev")
            .map_err(EmulatorError::os("/proc/thread-self/net/dev", ""))?;
        Ok(Tun { file, counters, name })
    }

    pub(crate) fn descriptor(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// Reads a burst behind its virtio header into an empty buffer; false if there is none.
    pub(crate) fn read(&mut self, buffer: &mut Vec<u8>) -> io::Result<bool> {
        buffer.clear();
        buffer.reserve(BURST_MAX_BYTES);
        // SAFETY: the room is there, and only what was read counts as initialised.
        let length = unsafe {
            let room = buffer.spare_capacity_mut();
            let length = libc::read(self.file.as_raw_fd(), room.as_mut_ptr().cast(), room.len());
            buffer.set_len(usize::try_from(length).unwrap_or(0));
            length
        };
        if length >= 0 {
            return Ok(true);
        }
        match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            error => Err(error),
        }
    }

    /// Writes a burst, headers first.
    pub(crate) fn write(&mut self, headers: &[u8], payload: &[u8]) -> io::Result<()> {
        self.file.write_vectored(&[IoSlice::new(headers), IoSlice::new(payload)]).map(drop)
    }

    /// Bursts that the kernel dropped between it and us, in both directions.
    pub(crate) fn lost(&mut self) -> io::Result<u64> {
        let mut text = String::new();
        self.counters.rewind()?;
        self.counters.read_to_string(&mut text)?;
        Ok(lost(&text, &self.name))
    }
}

/// Errors and drops of an interface in the text of /proc/net/dev: each direction has bytes, packets,
/// errors, drops and four columns more (proc_net(5)).
fn lost(text: &str, name: &str) -> u64 {
    let row = text.lines().find_map(|line| line.trim_start().strip_prefix(name)?.strip_prefix(':'));
    let columns = row.unwrap_or_default().split_whitespace().enumerate();
    columns.filter(|(at, _)| [2, 3, 10, 11].contains(at)).filter_map(|(_, n)| n.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    #[test]
    fn counters_of_the_kernel() {
        let text = "Inter-|   Receive ...\n face |bytes ...\n    lo:  9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9\n\
                    lfn10: 8 8 8 8 8 8 8 8 8 8 8 8 8 8 8 8\n  lfn1: 100 2 1 20 5 6 7 8 9 3 300 4000 5 6 7 8\n";
        assert_eq!(super::lost(text, "lfn1"), 4321);
    }
}
