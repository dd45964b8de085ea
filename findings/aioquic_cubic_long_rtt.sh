#!/bin/sh
# aioquic's CUBIC never leaves its initial window of 10 datagrams where the RTT is 2 s or more.
#
# It starts again when 2 s passed since `last_ack`, as after a pause of the application. But last_ack is the time at which
# the newest acknowledged packet was sent, not that of its ACK, and that lies an RTT back while data flow. So from an RTT of 2 s
# on each packet that is sent resets the window, also that of a connection that never paused and lost nothing. Its Reno, with
# no such test, grows. Seen with aioquic 1.7.2, seven round trips of slow start without loss.
# Expected: 1280 datagrams after seven round trips at any RTT.
set -eu
. "$(dirname "$0")/debian"
python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --target "$work/site" aioquic==1.7.2 >&2 || {
	echo "cannot get aioquic 1.7.2 from PyPI" >&2
	exit 2
}

# windows LAW RTT_S: the window in datagrams after seven round trips of a sender that always has data.
windows() {
	PYTHONPATH=$work/site python3 - "$@" <<'PYTHON'
import sys
from types import SimpleNamespace

from aioquic.quic.congestion import cubic, reno
from aioquic.quic.congestion.base import create_congestion_control

SIZE = 1200
law, rtt = sys.argv[1], float(sys.argv[2])
control = create_congestion_control(law, max_datagram_size=SIZE)
now, flight = 10.0, []
for _ in range(8):
    acked, flight = flight, []
    for packet in acked:
        control.on_packet_acked(now=now, packet=packet)
        control.on_rtt_measurement(now=now, rtt=rtt)
        while control.bytes_in_flight + SIZE <= control.congestion_window:
            flight.append(SimpleNamespace(sent_time=now, sent_bytes=SIZE))
            control.on_packet_sent(packet=flight[-1])
    while control.bytes_in_flight + SIZE <= control.congestion_window:
        flight.append(SimpleNamespace(sent_time=now, sent_bytes=SIZE))
        control.on_packet_sent(packet=flight[-1])
    now += rtt
print(control.congestion_window // SIZE)
PYTHON
}
expect "cubic, RTT 1.9 s" 1280 "$(windows cubic 1.9)"
expect "cubic, RTT 2.0 s" 10 "$(windows cubic 2.0)"
expect "cubic, RTT 2.5 s" 10 "$(windows cubic 2.5)"
expect "reno, RTT 2.5 s" 1280 "$(windows reno 2.5)"
exit "${changed:-0}"
