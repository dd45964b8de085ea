//! Addresses that users write: HOST:PORT, with the interface of a link-local address.

use std::ffi::CString;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6, ToSocketAddrs};

use crate::TransferError;

/// The first address of HOST:PORT; `what` is done with it.
pub(crate) fn resolve(text: &str, what: &str) -> Result<SocketAddr, TransferError> {
    let usage = |why: String| Err(TransferError::Usage(format!("{what} {text:?}: {why}")));
    let failed = |error| Err(TransferError::io(format!("{what} {text}"))(error));
    if let Some((ip, zone, port)) = with_zone(text) {
        return match index(zone) {
            Some(scope) => Ok(SocketAddrV6::new(ip, port, 0, scope).into()),
            None => usage(format!("no interface is called {zone:?}; `ip link` lists them")),
        };
    }
    match text.to_socket_addrs().map(|mut addresses| addresses.next()) {
        Ok(Some(SocketAddr::V6(address))) if is_link_local(address.ip()) && address.scope_id() == 0 => {
            usage("a link-local address needs its interface, as [fe80::1%eth0]:9000".to_owned())
        }
        Ok(Some(address)) => Ok(match address.ip().to_canonical() {
            ip @ IpAddr::V4(_) => SocketAddr::new(ip, address.port()),
            IpAddr::V6(_) => address,
        }),
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            usage("an address is HOST:PORT, as 127.0.0.1:9000".to_owned())
        }
        Ok(None) => failed(io::ErrorKind::AddrNotAvailable.into()),
        Err(error) => failed(error),
    }
}

fn is_link_local(ip: &Ipv6Addr) -> bool {
    ip.segments()[0] & 0xffc0 == 0xfe80
}

/// The parts of `[fe80::1%eth0]:9000`.
fn with_zone(text: &str) -> Option<(Ipv6Addr, &str, u16)> {
    let (host, port) = text.strip_prefix('[')?.split_once("]:")?;
    let (ip, zone) = host.split_once('%')?;
    Some((ip.parse().ok()?, zone, port.parse().ok()?))
}

/// The kernel's number of an interface, given by name or by number.
fn index(zone: &str) -> Option<u32> {
    let name = CString::new(zone).ok()?;
    // SAFETY: the name ends with a zero, and the kernel only reads it.
    let found = unsafe { libc::if_nametoindex(name.as_ptr()) };
    Some(found).filter(|&index| index > 0).or_else(|| zone.parse().ok().filter(|&index| index > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> String {
        resolve(text, "connecting to").map_or_else(|error| error.to_string(), |address| address.to_string())
    }

    #[test]
    fn an_interface_is_given_by_name_or_number() {
        // Loopback is interface 1 of every namespace.
        assert_eq!(said("[fe80::1%lo]:9000"), "[fe80::1%1]:9000");
        assert_eq!(said("[fe80::1%1]:9000"), "[fe80::1%1]:9000");
        assert!(
            said("[fe80::1%none]:9000").ends_with("no interface is called \"none\"; `ip link` lists them")
        );
        assert!(said("[fe80::1%]:9000").contains("no interface is called \"\""));
        assert!(said("[fe80::1]:9000").ends_with("needs its interface, as [fe80::1%eth0]:9000"));
        for wrong in ["[fe80::1%lo]", "[fe80::1%lo]:x", "fe80::1%lo:9000:", "[1.2.3.4%lo]:1", "[%lo]:1"] {
            assert!(said(wrong).starts_with("connecting to "), "{wrong}: {}", said(wrong));
        }
    }

    #[test]
    fn an_ipv4_address_within_ipv6_is_one_of_ipv4() {
        assert_eq!(said("[::ffff:127.0.0.1]:9"), "127.0.0.1:9");
        assert_eq!(said("[::1]:9"), "[::1]:9");
    }
}
