#!/bin/sh
# An iperf3 server's JSON of a UDP test counts every datagram and 0 bytes.
#
# `iperf3 -s --json` with a client `iperf3 -u` over loopback: the server's end.sum says "sender": false, the number of
# datagrams that arrived, and 0 bytes. The bytes that arrived are in end.sum_received alone. Seen with iperf3 3.12.
# Expected: the bytes of the datagrams that end.sum counts.
set -eu
. "$(dirname "$0")/debian"
get iperf3=3.12-1+deb12u2

port=$(python3 -c 'import socket; print(socket.create_server(("127.0.0.1", 0)).getsockname()[1])')
iperf3 -s -1 -B 127.0.0.1 -p "$port" --json >"$work/server.json" &
sleep 1
timeout 20 iperf3 -u -c 127.0.0.1 -p "$port" -b 5M -l 1000 -t 1 >"$work/client"
wait
found=$(python3 - "$work/server.json" <<'PYTHON'
import json, sys
end = json.load(open(sys.argv[1]))["end"]
total, received = end["sum"], end["sum_received"]
print("sender" if total["sender"] else "receiver", "datagrams" if total["packets"] > 500 else "none", total["bytes"],
      "all" if received["bytes"] == 1000 * received["packets"] else "other")
PYTHON
)
expect "end.sum: side, packets, bytes; bytes of end.sum_received" "receiver datagrams 0 all" "$found"
exit "${changed:-0}"
