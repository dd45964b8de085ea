#!/bin/sh
# The JSON of an iperf3 test that --fq-rate paces says that no rate was asked for.
#
# `iperf3 --fq-rate 50M -J` sets SO_MAX_PACING_RATE of the socket, and the test has 50 Mbit/s. The file has no key for the
# rate, and test_start.target_bitrate is 0, as of a test without a limit; with -b the rate stands there. So such a file
# looks as one of a path, a window or a buffer of that rate. Seen with iperf3 3.12.
# Expected: the rate that was asked for, in target_bitrate or in a key of its own.
set -eu
. "$(dirname "$0")/debian"
get iperf3=3.12-1+deb12u2

measure() {
	port=$(python3 -c 'import socket; print(socket.create_server(("127.0.0.1", 0)).getsockname()[1])')
	iperf3 -s -1 -B 127.0.0.1 -p "$port" >"$work/server" &
	sleep 1
	timeout 20 iperf3 -c 127.0.0.1 -p "$port" -t 3 -J "$@" >"$work/client.json"
	wait
	python3 - "$work/client.json" <<'PYTHON'
import json, sys
test = json.load(open(sys.argv[1]))
rate = test["end"]["sum_received"]["bits_per_second"]
said = json.dumps(test["start"])
print("held" if 30e6 < rate < 80e6 else "free", test["start"]["test_start"]["target_bitrate"],
      "named" if "50000000" in said else "not named")
PYTHON
}
expect "--fq-rate 50M: rate, target_bitrate, the number in start" "held 0 not named" "$(measure --fq-rate 50M)"
expect "-b 50M: the same" "held 50000000 named" "$(measure -b 50M)"
exit "${changed:-0}"
