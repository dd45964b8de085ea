#!/bin/sh
# Two interfaces of raw IP in a pcapng file are of one link type, and libpcap calls them different.
#
# A pcapng file names the link type of each interface; libpcap reads only files whose interfaces have one link type. Seen
# with tcpdump 4.99.3 and libpcap 1.10.3: two interfaces of LINKTYPE_RAW (101) are refused with "an interface has a type
# 101 different from the type of the first interface"; two of LINKTYPE_IPV4 (228) are read. Expected: both files are read.
set -eu
. "$(dirname "$0")/debian"
get tcpdump=4.99.3-1 libpcap0.8=1.10.3-1

for kind in 101 228; do
	python3 "$(dirname "$0")/pcapng" "$work/$kind.pcapng" $kind 6 2 0 1
	tcpdump -nr "$work/$kind.pcapng" >"$work/$kind.rows" 2>"$work/$kind.told" || true
done
expect "packets read of 101" 0 "$(wc -l <"$work/101.rows")"
expect "packets read of 228" 2 "$(wc -l <"$work/228.rows")"
reason=$(grep -c "an interface has a type 101 different from the type of the first interface" "$work/101.told" || true)
expect "refusals that name two types" 1 "$reason"
exit "${changed:-0}"
