#!/bin/sh
# A Linux server refuses ECN to a SYN that asks for it and is itself ECN-capable, whatever tcp_ecn says.
#
# DCTCP (RFC 8257, section 3.6, as Linux has it) and ECN++ (draft-ietf-tcpm-generalized-ecn) send the SYN as ECT(0). A
# Linux server takes the field for a sign of a broken network and answers without ECE, so the connection has no ECN:
# the data are Not-ECT, and a queue drops them. With tcp_ecn = 1 and with 2 the flags ECE and CWR alone would have done. A
# server whose own congestion control needs ECN agrees (seen with such a law, loaded by BPF): set it at both ends.
# Seen with Linux 6.18, iproute2 6.1.0. Expected: ECN is agreed by the flags, and the field of the SYN has no effect.
set -eu
. "$(dirname "$0")/debian"
get iproute2=6.1.0-3

cat >"$work/syns.py" <<'PYTHON'
"""Answers of a server on loopback to SYNs that ask for ECN, by the ECN field of their IP header."""
import signal, socket, struct, subprocess, sys

ECE, CWR, ACK, SYN = 0x40, 0x80, 0x10, 0x02
HOST = "127.0.0.1"


def checksum(data):
    words = sum(struct.unpack(f"!{len(data) // 2}H", data))
    words = (words & 0xFFFF) + (words >> 16)
    return ~(words + (words >> 16)) & 0xFFFF


def syn(port, field):
    """An IP packet with a SYN with ECE and CWR."""
    address = socket.inet_aton(HOST)
    tcp = struct.pack("!HHIIBBHHH", port, 5000, 1000, 0, 5 << 4, SYN | ECE | CWR, 65535, 0, 0)
    pseudo = address + address + struct.pack("!BBH", 0, 6, len(tcp))
    tcp = tcp[:16] + struct.pack("!H", checksum(pseudo + tcp)) + tcp[18:]
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, field, 20 + len(tcp), port, 0, 64, 6, 0, address, address)
    return ip + tcp


signal.alarm(30)
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
with open("/proc/sys/net/ipv4/tcp_ecn", "w") as file:
    file.write(sys.argv[1])
server = socket.create_server((HOST, 5000))
out = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
seen = []
for name, field in (("Not-ECT", 0), ("ECT(1)", 1), ("ECT(0)", 2), ("CE", 3)):
    back = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP)
    port = 6000 + field
    out.sendto(syn(port, field), (HOST, 0))
    while True:
        tcp = back.recv(1 << 12)[20:]
        source, to, flags = *struct.unpack("!HH", tcp[:4]), tcp[13]
        if (source, to) == (5000, port) and flags & (SYN | ACK) == SYN | ACK:
            break
    seen.append(f"{name}:{'ECN' if flags & ECE else 'none'}")
    back.close()
print(*seen)
PYTHON
unshare -rn true 2>/dev/null || {
	echo "no namespaces of networks without rights here" >&2
	exit 2
}
for ecn in 1 2; do
	found=$(unshare -rn python3 "$work/syns.py" "$ecn")
	expect "Linux $(uname -r), tcp_ecn = $ecn: SYN's field, answer" "Not-ECT:ECN ECT(1):none ECT(0):none CE:none" "$found"
done
exit "${changed:-0}"
