// Reno (RFC 5681), counted in whole packets, as a controller that lfnlab loads. Change mine into yours.
//
//	go build -buildmode=c-shared -o mine.so .
//	lfn compare --law ./mine.so,reno:linux --rate 100Mbit/s --rtt 40ms
package main

// #include "controller.h"
import "C"

import "math"

// The name in results is in table.c.
type mine struct {
	packetBytes uint64
	window      uint64 // Packets.
	ssthresh    uint64 // Packets.
	counted     uint64 // Packets delivered since the window last grew.
	before      [2]uint64
}

func create(config *C.struct_lfn_config) *mine {
	packet := uint64(config.packet_bytes)
	return &mine{
		packetBytes: packet,
		window:      uint64(config.initial_window_bytes) / packet,
		ssthresh:    math.MaxUint64,
	}
}

func (m *mine) ack(ack *C.struct_lfn_ack, control *C.struct_lfn_control) {
	const stays = C.LFN_ACK_RECOVERY | C.LFN_ACK_DUPLICATE
	if ack.flags&stays != 0 || ack.flags&C.LFN_ACK_WINDOW_LIMITED == 0 {
		return
	}
	delivered := uint64(ack.acked_bytes) / m.packetBytes
	if m.window < m.ssthresh { // Slow start
		grown := min(delivered, m.ssthresh-m.window)
		m.window += grown
		delivered -= grown
	}
	if delivered > 0 { // Congestion avoidance: a packet for each window of them
		if m.counted >= m.window {
			m.counted = 0
			m.window++
		}
		m.counted += delivered
		grown := m.counted / m.window
		m.counted -= grown * m.window
		m.window += grown
	}
	control.window_bytes = C.uint64_t(m.window * m.packetBytes)
}

func (m *mine) event(event C.uint32_t, control *C.struct_lfn_control) {
	switch event {
	case C.LFN_EVENT_LOSS, C.LFN_EVENT_CE, C.LFN_EVENT_TIMEOUT:
		m.before = [2]uint64{m.window, m.ssthresh}
		m.ssthresh = max(m.window/2, 2)
		m.window = m.ssthresh
		if event == C.LFN_EVENT_TIMEOUT {
			m.window = 1
		}
		m.counted = 0
	case C.LFN_EVENT_TIMEOUT_AGAIN:
		m.window = 1
	case C.LFN_EVENT_SPURIOUS:
		if m.before[0] > m.window {
			m.window, m.ssthresh = m.before[0], m.before[1]
		}
	}
	control.window_bytes = C.uint64_t(m.window * m.packetBytes)
}
