# A transfer from a to b over the router between them, whose link to b has an MTU that changes as the file arrives.
#
# usage: sh mtu.sh FOLDER FAMILY MSS "MTU OF THE NEAR LINK, MTUS OF THE FAR LINK" LFN... -- OPTIONS OF THE SENDER
#
# It runs in namespaces without names, which end with its process. FOLDER has the file `blob` and an empty folder `in`.
# In the environment: `key`, an option of both ends; `fault`, a command of the router once the path is there.
set -eu
folder=$1 family=$2 mss=$3
set -- $4 -- "$@"
near_mtu=$1 far_mtu=$2
shift 2
mtus=
while [ "$1" != -- ]; do mtus="$mtus $1"; shift; done
shift 5
lfn=
while [ "$1" != -- ]; do lfn="$lfn $1"; shift; done
shift
cd "$folder"
ip link set lo up
unshare --net sleep 600 & a=$!
unshare --net sleep 600 & b=$!
for end in $a $b; do
    until [ "$(readlink "/proc/$end/ns/net")" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.05; done
done
near() { nsenter --target "$a" --net "$@"; }
come() { stat -c %s in/.lfn-*.part 2>/dev/null || echo 0; }
far() { nsenter --target "$b" --net "$@"; }
ip link add ra type veth peer name va netns "$a"
ip link add rb type veth peer name vb netns "$b"
sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
for end in near far; do
    if [ $end = near ]; then n=1 link=a mtu=$near_mtu; else n=2 link=b mtu=$far_mtu; fi
    $end ip link set lo up
    $end sysctl -qw net.ipv6.conf.v$link.accept_dad=0
    sysctl -qw net.ipv6.conf.r$link.accept_dad=0
    $end ip link set v$link mtu $mtu up
    ip link set r$link mtu $mtu up
    ip addr add 10.71.$n.2/24 dev r$link
    $end ip addr add 10.71.$n.1/24 dev v$link
    ip addr add fd71:$n::2/64 dev r$link nodad
    $end ip addr add fd71:$n::1/64 dev v$link nodad
    $end ip route add default via 10.71.$n.2
    $end ip -6 route add default via fd71:$n::2
done
# What was learned from ICMP is forgotten soon, so that larger packets are tried again.
near sysctl -qw net.ipv4.route.mtu_expires=2 net.ipv6.route.mtu_expires=2
eval "${fault:-}"
if [ "$family" = 4 ]; then listen=0.0.0.0:9000 to=10.71.2.1:9000; else listen="[::]:9000" to="[fd71:2::1]:9000"; fi
far $lfn recv in --listen "$listen" --once --mss $mss ${key:---insecure} > recv.log 2>&1 & recv=$!
until grep -q listening recv.log; do
    kill -0 $recv
    sleep 0.1
done
near $lfn send blob --to "$to" --mss $mss ${key:-} "$@" > send.log 2>&1 & send=$!
bytes=$(stat -c %s blob) count=$(echo $mtus | wc -w) stage=0
for mtu in $mtus; do
    stage=$((stage + 1))
    until [ "$(come)" -ge $((bytes * stage / (count + 1))) ]; do
        kill -0 $send 2>/dev/null || break
        sleep 0.02
    done
    ip link set rb mtu "$mtu"
    far ip link set vb mtu "$mtu"
    echo "MTU $mtu at $(come) bytes"
done
wait $send && echo sent || { echo "send: $?"; cat send.log; }
wait $recv && echo received || { echo "recv: $?"; cat recv.log; }
echo "fragments $(near cat /proc/net/snmp /proc/net/snmp6 | awk '
    /^Ip: [0-9]/ { sum += $20 } /^Ip6FragCreates/ { sum += $2 } END { print sum }')"
