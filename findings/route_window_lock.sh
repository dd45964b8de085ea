#!/bin/sh
# A route's `cwnd lock N` bounds no first connection to a host, and none at all where no metrics are saved.
#
# ip-route(8): cwnd is "the clamp for congestion window. It is ignored if the lock flag is not used". Linux keeps the
# value in its cache of TCP metrics, which has no entry for a host until a connection to it has ended: the first one
# grows as if the route said nothing, the next ones keep to N. With net.ipv4.tcp_no_metrics_save=1, as in many guides
# to tuning data-transfer nodes, no entry is made, so the lock never holds. `initcwnd` of the same route holds at once.
# Seen with Linux 6.12 and 6.18, iproute2 6.1.0. Expected: every connection over the route keeps to N.
set -eu
. "$(dirname "$0")/debian"
get iproute2=6.1.0-3

cat >"$work/connections.py" <<'PYTHON'
"""Windows of three connections in turn over veth, from one namespace of networks to another."""
import ctypes, os, signal, socket, struct, subprocess, sys

NEW_NETWORK, WINDOW = 0x40000000, 8 + 18 * 4  # unshare(2); offset of tcpi_snd_cwnd


def ip(words):
    subprocess.run(["ip", *words.split()], check=True)


def receiver(made, wired):
    ctypes.CDLL(None).unshare(NEW_NETWORK)
    os.write(made, b".")
    os.read(wired, 1)
    for words in ("link set lo up", "link set far up", "addr add 10.9.0.2/24 dev far"):
        ip(words)
    server = socket.create_server(("10.9.0.2", 5000))
    os.write(made, b".")
    while True:
        peer = server.accept()[0]
        while peer.recv(1 << 16):
            pass
        peer.close()


signal.alarm(60)
(made, to_made), (wired, to_wired) = os.pipe(), os.pipe()
child = os.fork()
if child == 0:
    signal.alarm(60)
    receiver(to_made, wired)
try:
    os.read(made, 1)
    ip("link add near type veth peer name far")
    ip(f"link set far netns {child}")
    for words in ("link set lo up", "addr add 10.9.0.1/24 dev near", "link set near up"):
        ip(words)
    os.write(to_wired, b".")
    os.read(made, 1)
    ip("route add 10.9.0.2/32 dev near initcwnd 4 cwnd lock 15")
    with open("/proc/sys/net/ipv4/tcp_no_metrics_save", "w") as file:
        file.write(sys.argv[1])
    seen = []
    for _ in range(3):
        connection = socket.create_connection(("10.9.0.2", 5000), timeout=20)
        window = lambda: struct.unpack_from("I", connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 192), WINDOW)[0]
        first, most = window(), 0
        for _ in range(40):
            connection.sendall(bytes(1_000_000))
            most = max(most, window())
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1)  # its end: the connection is over on both sides
        connection.close()
        seen.append(f"{first}:{'15' if most == 15 else 'more' if most > 15 else 'less'}")
    print(*seen)
finally:
    os.kill(child, signal.SIGKILL)
PYTHON
unshare -rn true 2>/dev/null || {
	echo "no namespaces of networks without rights here" >&2
	exit 2
}
for none in 0 1; do
	found=$(unshare -rn python3 "$work/connections.py" "$none")
	case $none in
	0) expect "Linux $(uname -r), metrics saved: first window, largest" "4:more 4:15 4:15" "$found" ;;
	1) expect "Linux $(uname -r), none saved: first window, largest" "4:more 4:more 4:more" "$found" ;;
	esac
done
exit "${changed:-0}"
