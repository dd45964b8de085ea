# One drop-tail bottleneck in ns-2.
# usage: ns dumbbell.tcl KEY VALUE ...   (keys and defaults below; writes samples to `samples`, totals to stdout)
#
# Settings that matter for a fair comparison: only the headers in use; packets of 1500 bytes whatever
# the options; TCP-Linux needs timestamps; no delayed ACKs (Sack1 sink). A DropTail limit of n is n - 1 waiting and one in service.

array set opt {
    law reno  flows 1  rate_bps 1e8  rtt_s 0.1  spread 0  buffer 833  duration_s 10  packet_b 1500
    ssthresh 0  stagger_s 0.1  sample_s 0.01  samples ""  scheduler Calendar  transfers ""
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
$ns simplex-link $right $left [expr {$opt(transfers) eq "" ? $fast_bps : $opt(rate_bps)}] 0 DropTail
$ns queue-limit $left $right $opt(buffer)
$ns queue-limit $right $left [expr {$opt(transfers) eq "" ? 100000000 : $opt(buffer)}]
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
    $ns at [$ns now] $begin
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

# Short flows: each line of the file `transfers` is a start in seconds, bytes, a direction (0 forward, 1 reverse)
# and an RTT of 10, 20, ..., 200 ms. A pair of agents that is free takes it. The way back then has the
# bottleneck's rate and buffer.
set sent 0
if {$opt(transfers) ne ""} {
    for {set rtt_ms 10} {$rtt_ms <= 200} {incr rtt_ms 10} {
        foreach {direction hop} [list 0 $left 1 $right] {
            set node [$ns node]
            $ns duplex-link $node $hop $fast_bps [expr {$rtt_ms / 4e3}]s DropTail
            $ns queue-limit $node $hop 100000000
            $ns queue-limit $hop $node 100000000
            set host($direction,$rtt_ms) $node
            set free($direction,$rtt_ms) {}
        }
    }
    # A forward transfer's data packets that have been sent are counted when it ends, and at the end of the run.
    Agent/TCP instproc done {} {
        global free sent sink_of pair forward
        if {![info exists pair($self)]} return
        if {$forward($self)} { incr sent [$self set ndatapack_] }
        lappend free($pair($self)) $self
        $self reset
        $sink_of($self) reset
    }
    proc begin {bytes direction rtt_ms} {
        global ns opt host free sink_of pair forward
        set waiting $free($direction,$rtt_ms)
        if {[llength $waiting]} {
            set tcp [lindex $waiting end]
            set free($direction,$rtt_ms) [lrange $waiting 0 end-1]
        } else {
            set tcp [sender $opt(law) 0]
            set sink_of($tcp) [new Agent/TCPSink/Sack1]
            $tcp set window_ 44
            $ns attach-agent $host($direction,$rtt_ms) $tcp
            $ns attach-agent $host([expr {1 - $direction}],$rtt_ms) $sink_of($tcp)
            $ns connect $tcp $sink_of($tcp)
            set pair($tcp) $direction,$rtt_ms
            set forward($tcp) [expr {!$direction}]
        }
        $tcp advanceby [expr {($bytes + $opt(packet_b) - 41) / ($opt(packet_b) - 40)}]
    }
    set lines [open $opt(transfers)]
    proc next {} {
        global ns lines
        if {[gets $lines line] >= 0} {
            $ns at [lindex $line 0] "begin [lrange $line 1 3]; next"
        }
    }
    next
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
    # Data packets that left the bottleneck, packets lost there, packets acknowledged by each flow.
    set acked {}
    set delivered [$bottleneck set pdepartures_]
    for {set i 0} {$i < $opt(flows)} {incr i} { lappend acked [$tcp($i) set ack_] }
    # ACKs of the reverse direction pass the bottleneck too.
    if {$opt(transfers) ne ""} {
        set delivered [expr {$sent - [$bottleneck set pdrops_]}]
        for {set i 0} {$i < $opt(flows)} {incr i} { incr delivered [$tcp($i) set ndatapack_] }
        foreach agent [array names pair] {
            if {$forward($agent)} { incr delivered [$agent set ndatapack_] }
        }
    }
    puts "delivered $delivered drops [$bottleneck set pdrops_] acked [join $acked ,]"
    exit 0
}
$ns run
