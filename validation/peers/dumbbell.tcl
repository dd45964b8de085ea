# One drop-tail bottleneck in ns-2.
# usage: ns dumbbell.tcl KEY VALUE ...   (keys and defaults below; writes samples to `samples`, totals to stdout)
#
# Settings that matter for a fair comparison: only the headers in use; packets of 1500 bytes whatever
# the options; TCP-Linux needs timestamps; no delayed ACKs (Sack1 sink). A DropTail limit of n is n - 1 waiting and one in service.

array set opt {
    law reno  flows 1  rate_bps 1e8  rtt_s 0.1  spread 0  buffer 833  duration_s 10  packet_b 1500
    ssthresh 0  stagger_s 0.1  sample_s 0.01  samples ""  scheduler Calendar
}
array set opt $argv

remove-all-packet-headers
add-packet-header IP TCP Flags
set ns [new Simulator]
$ns use-scheduler $opt(scheduler)

Agent/TCP set packetSize_ [expr {$opt(packet_b) - 40}]
Agent/TCP set useHeaders_ true
Agent/TCP set ts_option_size_ 0
Agent/TCP set window_ 10000000
Agent/TCP set timestamps_ true
Agent/TCPSink set ts_echo_rfc1323_ true

set left [$ns node]
set right [$ns node]
# Hosts' links take no time, as in the laboratory. At ten times the bottleneck's rate they add a fifth of a
# packet's time to every RTT and spread bursts, and another flow wins.
set fast_bps [expr {1e4 * $opt(rate_bps)}]
$ns simplex-link $left $right $opt(rate_bps) 0 DropTail
$ns simplex-link $right $left $fast_bps 0 DropTail
$ns queue-limit $left $right $opt(buffer)
$ns queue-limit $right $left 100000000
set bottleneck [$ns monitor-queue $left $right ""]

# Sack1 runs the native agent; "hstcp-native" its RFC 3649 mode; every other name a TCP-Linux module.
# Agents are reset as the simulation begins, and a TCP-Linux module takes its ssthresh when selected.
proc sender {law ssthresh} {
    global ns
    set native [expr {$law eq "sack1" || $law eq "hstcp-native"}]
    set tcp [new Agent/TCP/[expr {$native ? "Sack1" : "Linux"}]]
    set begin ""
    if {$ssthresh > 0} { append begin "$tcp set ssthresh_ $ssthresh;" }
    if {!$native} { append begin "$tcp select_ca $law" }
    if {$law eq "hstcp-native"} { $tcp set windowOption_ 8 }
    $ns at 0 $begin
    return $tcp
}

for {set i 0} {$i < $opt(flows)} {incr i} {
    # RTTs are spread evenly over rtt * (1 -+ spread).
    set rtt($i) $opt(rtt_s)
    if {$opt(flows) > 1} {
        set rtt($i) [expr {$rtt($i) * (1 + $opt(spread) * (2.0 * $i / ($opt(flows) - 1) - 1))}]
    }
    set source [$ns node]
    set sink [$ns node]
    $ns duplex-link $source $left $fast_bps [expr {$rtt($i) / 4}]s DropTail
    $ns duplex-link $right $sink $fast_bps [expr {$rtt($i) / 4}]s DropTail
    foreach {a b} [list $source $left $left $source $right $sink $sink $right] {
        $ns queue-limit $a $b 100000000
    }
    set tcp($i) [sender $opt(law) $opt(ssthresh)]
    set receiver [new Agent/TCPSink/Sack1]
    $tcp($i) set fid_ $i
    $ns attach-agent $source $tcp($i)
    $ns attach-agent $sink $receiver
    $ns connect $tcp($i) $receiver
    set ftp($i) [new Application/FTP]
    $ftp($i) attach-agent $tcp($i)
    $ns at [expr {$i * $opt(stagger_s)}] "$ftp($i) start"
}

# The RTT that is sampled is the path's and the queue's: TCP-Linux's own has samples after losses that are
# far too long, and with ten flows of BIC a mean 7 ms above what the path and a full queue give.
if {$opt(samples) ne ""} {
    set file [open $opt(samples) w]
    puts $file "time_s,flow,cwnd,ssthresh,cuts,maxseq,drops,acked,rtt_s"
    proc sample {} {
        global ns opt tcp rtt file bottleneck
        set now [$ns now]
        set drops [$bottleneck set pdrops_]
        set queue_s [expr {8.0 * [$bottleneck set size_] / $opt(rate_bps)}]
        for {set i 0} {$i < $opt(flows)} {incr i} {
            set t $tcp($i)
            puts $file "$now,$i,[$t set cwnd_],[$t set ssthresh_],[$t set ncwndcuts_],[$t set maxseq_],$drops,[$t set ack_],[expr {$rtt($i) + $queue_s}]"
        }
        $ns at [expr {$now + $opt(sample_s)}] sample
    }
    $ns at $opt(sample_s) sample
}

$ns at $opt(duration_s) {
    # Packets that left the bottleneck, packets lost there, packets acknowledged by each flow.
    set acked {}
    for {set i 0} {$i < $opt(flows)} {incr i} { lappend acked [$tcp($i) set ack_] }
    puts "delivered [$bottleneck set pdepartures_] drops [$bottleneck set pdrops_] acked [join $acked ,]"
    exit 0
}
$ns run
