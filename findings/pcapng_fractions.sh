#!/bin/sh
# tshark reads a wrong fraction of a second where times are in picoseconds, and libpcap where they are in 2^-40 s.
#
# A pcapng file may give its times in any unit of 10^-n or 2^-n seconds (if_tsresol, n up to 127). Seen with tshark
# 4.0.17, and tcpdump 4.99.3 with libpcap 1.10.3, on a packet 0.123456789 s after a whole second. Both are right down to
# 10^-11 and 2^-33; libpcap is right with all powers of ten. Expected of both: 123456789 ns in each row. A guess at the
# cause: the product of the fraction and 10^9 exceeds 64 bits.
set -eu
. "$(dirname "$0")/debian"
get tshark=4.0.17-0+deb12u3 tcpdump=4.99.3-1 libpcap0.8=1.10.3-1

row() { # NAME UNIT TICKS_A_SECOND NS_OF_TCPDUMP NS_OF_TSHARK
	ticks=$(python3 -c "print(1_700_000 * $3 + $3 * 123_456_789_012 // 10**12)")
	python3 "$(dirname "$0")/pcapng" "$work/trace.pcapng" 228 "$2" 1 "$ticks"
	expect "$1, ns by tcpdump" "$4" "$(tcpdump --nano -ttnr "$work/trace.pcapng" 2>"$work/told" | cut -d ' ' -f 1 | cut -d . -f 2)"
	expect "$1, ns by tshark" "$5" "$(tshark -nr "$work/trace.pcapng" -T fields -e frame.time_epoch 2>"$work/told" | cut -d . -f 2)"
}
row "10^-11 s" 11 "10**11" 123456789 123456789
row "10^-12 s" 12 "10**12" 123456789 012776324
row "2^-40 s" 168 "2**40" 006016277 006016277
exit "${changed:-0}"
