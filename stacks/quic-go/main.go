// quic-go's congestion sender, unmodified, called as its sentPacketHandler calls it. The build puts this file into a copy of
// the module, since the sender is internal.
package main

// #include <stdint.h>
// #include "controller.h"
import "C"

import (
	"runtime/cgo"
	"time"
	"unsafe"

	"github.com/quic-go/quic-go/internal/congestion"
	"github.com/quic-go/quic-go/internal/monotime"
	"github.com/quic-go/quic-go/internal/protocol"
	"github.com/quic-go/quic-go/internal/utils"
)

// The build sets it to "reno", quic-go's default, or to "cubic", to which no option of quic-go leads.
var controller string

// A connection. The clock is simulated time.
type stack struct {
	sender   congestion.SendAlgorithmWithDebugInfos
	rtt      *utils.RTTStats
	nowNs    uint64
	packet   protocol.ByteCount
	inFlight protocol.ByteCount
	prior    protocol.ByteCount
	open     map[uint64]struct{}
	acked    []uint64
	lost     []uint64
}

// quic-go takes time 0 for none.
func at(ns uint64) monotime.Time { return monotime.Time(ns + uint64(time.Second)) }

func (s *stack) Now() monotime.Time { return at(s.nowNs) }

//export goCreate
func goCreate(given, control unsafe.Pointer) C.uintptr_t {
	config := (*C.struct_lfn_config)(given)
	s := &stack{
		rtt:    utils.NewRTTStats(),
		nowNs:  uint64(config.now_ns),
		packet: protocol.ByteCount(config.packet_bytes),
		open:   map[uint64]struct{}{},
	}
	if config.srtt_ns > 0 {
		s.rtt.UpdateRTT(time.Duration(config.srtt_ns), 0)
	}
	s.sender = congestion.NewCubicSender(s, s.rtt, &utils.ConnectionStats{}, s.packet, controller == "reno", nil)
	s.decide(control)
	return C.uintptr_t(cgo.NewHandle(s))
}

//export goDestroy
func goDestroy(state C.uintptr_t) { cgo.Handle(state).Delete() }

func of(state C.uintptr_t) *stack { return cgo.Handle(state).Value().(*stack) }

// The pacing rate of quic-go is 5/4 of the window in a smoothed RTT, in slow start 2 windows (cubicSender.pacingRate).
func (s *stack) decide(control unsafe.Pointer) {
	window := uint64(s.sender.GetCongestionWindow())
	decided := (*C.struct_lfn_control)(control)
	decided.window_bytes = C.uint64_t(window)
	if srtt := uint64(s.rtt.SmoothedRTT()); srtt > 0 {
		gain := 1.25
		if s.sender.InSlowStart() {
			gain = 2
		}
		decided.pacing_Bps = C.uint64_t(float64(window) * gain * 1e9 / float64(srtt))
	}
}

func (s *stack) tell() {
	for _, number := range s.lost {
		s.sender.OnCongestionEvent(protocol.PacketNumber(number), s.packet, s.prior)
	}
	for _, number := range s.acked {
		s.sender.OnPacketAcked(protocol.PacketNumber(number), s.packet, s.prior, s.Now())
	}
	s.lost, s.acked = s.lost[:0], s.acked[:0]
	s.prior = s.inFlight
}

//export goSent
func goSent(state C.uintptr_t, nowNs C.uint64_t, given unsafe.Pointer, inFlight C.uint64_t, control unsafe.Pointer) {
	s, packet := of(state), (*C.struct_lfn_packet)(given)
	s.nowNs = uint64(nowNs)
	s.tell() // Losses that a timer found.
	number := uint64(packet.number)
	s.open[number] = struct{}{}
	s.sender.OnPacketSent(s.Now(), s.inFlight, protocol.PacketNumber(number), protocol.ByteCount(packet.bytes), true)
	s.inFlight = protocol.ByteCount(inFlight)
	s.prior = s.inFlight
	s.decide(control)
}

// goFate tells that a packet was acknowledged or found lost, once.
//
//export goFate
func goFate(state C.uintptr_t, nowNs C.uint64_t, given unsafe.Pointer, lost C.int) {
	s, packet := of(state), (*C.struct_lfn_packet)(given)
	s.nowNs = uint64(nowNs)
	number := uint64(packet.number)
	if _, is := s.open[number]; !is {
		return
	}
	delete(s.open, number)
	s.inFlight = max(s.inFlight-protocol.ByteCount(packet.bytes), 0)
	if lost != 0 {
		s.lost = append(s.lost, number)
	} else {
		s.acked = append(s.acked, number)
	}
}

//export goAck
func goAck(state C.uintptr_t, given, control unsafe.Pointer) {
	s, ack := of(state), (*C.struct_lfn_ack)(given)
	s.nowNs = uint64(ack.now_ns)
	if ack.rtt_ns > 0 {
		s.rtt.UpdateRTT(time.Duration(ack.rtt_ns), 0)
		s.sender.MaybeExitSlowStart()
	}
	if ack.ce_packets > 0 && len(s.acked) > 0 {
		s.sender.OnCongestionEvent(protocol.PacketNumber(s.acked[len(s.acked)-1]), 0, s.prior)
	}
	s.tell()
	s.decide(control)
}

// goTimeout tells of a timeout. quic-go v0.65.0 calls OnRetransmissionTimeout nowhere, and has no persistent congestion.
//
//export goTimeout
func goTimeout(state C.uintptr_t, nowNs C.uint64_t, control unsafe.Pointer) {
	s := of(state)
	s.nowNs = uint64(nowNs)
	s.tell()
	s.decide(control)
}

func main() {}
