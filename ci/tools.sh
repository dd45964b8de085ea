#!/bin/sh
# Installs what the tests of kernel, browser and packet traces need beyond the README's list, where
# that is possible: as root, with apt. Elsewhere those tests say what they lack and are skipped.
set -u
missing=
need() { # PACKAGE COMMAND...
	package=$1
	shift
	"$@" >/dev/null 2>&1 || missing="$missing $package"
}
need bpftool command -v bpftool
need chromium command -v chromium
need clang-14 command -v clang-14
need iperf3 command -v iperf3
need iproute2 command -v ip
need libbpf-dev test -e /usr/include/bpf/libbpf.h
need libudt-dev test -e /usr/include/udt/udt.h
need llvm-14 command -v llvm-strip-14
need nodejs command -v node
need strace command -v strace
need tcptrace command -v tcptrace
need tshark command -v tshark
need valgrind command -v valgrind
[ -n "$missing" ] || exit 0

install() {
	[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null &&
		apt-get -qq update &&
		# shellcheck disable=SC2086  # a list of packages
		DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends $missing >/dev/null
}
install || echo "NOT INSTALLED, so that tests will be missing:$missing" >&2
