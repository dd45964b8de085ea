/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A law as a TCP congestion control of Linux (BPF struct_ops, 6.4 or later).
 *
 * Linux owns packets, recovery (PRR) and RTT; laws/slow_start.h owns slow start; the law owns the
 * window from there on. One object holds one law, in its default variant, named lfn_<law>:
 *
 *   Linux calls      when                                    the law sees
 *   init             the connection is established           init
 *   pkts_acked       every ACK, after RTT and SACK           on_sample
 *   cong_avoid       the ACK may raise cwnd                  slow start, then on_ack
 *   ssthresh         entry to CWR, Recovery or Loss          on_loss
 *   cwnd_event,      Linux has set cwnd = ssthresh,          on_open
 *   set_state        or Loss ended
 *   cwnd_event       a segment arrives (laws that need ECN)  nothing: tcp_arrival
 *   undo_cwnd        the reduction was spurious              on_undo
 *
 * cwnd is Q32.32: snd_cwnd holds the segments, snd_cwnd_cnt the fraction (Linux zeroes it at a
 * reduction). A law that needs on_tick does not build here, and pacing_Bps is not obeyed. A law
 * with on_control (6.10 or later) has instead of pkts_acked, cong_avoid and slow start:
 *
 *   cong_control     every ACK, in every state               on_control; pacing_Bps is obeyed
 *   cwnd_event       the first segment after idleness        on_restart
 */
#ifndef LFN_LAW_BPF_H
#define LFN_LAW_BPF_H

#include "minimal.bpf.h"

#ifdef __bpf__
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
/* Small constant arrays would go to .rodata.cst16 and the like, which clang's BTF does not know. */
#pragma clang section rodata = ".rodata"
#else
#include "native.h"
#endif

#define LFN_BPF
#include "law.h"
#include "slow_start.h"

/* icsk_ca_priv: 104 bytes. */
struct private {
	struct slow_start slow_start;
	u64 state[LAW_STATE_BYTES / sizeof(u64)];
};
_Static_assert(sizeof(struct private) <= LAW_PRIVATE_BYTES, "exceeds icsk_ca_priv");

/* Values that Linux passes in several calls: the ACK being processed, and totals before it. */
struct flow {
	struct law_ack ack;
	u64 rtt_ns; /* last valid sample */
	u32 lost;
	u32 delivered_ce;
	u32 round_end; /* snd_nxt when the round began */
	u32 reduced; /* an episode is open: on_loss was called, on_open or on_undo not yet */
	u64 fraction; /* of cwnd, as snd_cwnd_cnt has it until a reduction; then of ssthresh */
	/* The last word is tcp_arrival's, whose calls are not recorded. */
	u32 rcv_nxt; /* before the segment that arrives */
	u32 ce; /* DCTCP.CE of RFC 8257: the last segment was marked */
};

SEC(".maps") struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct flow);
} flows;

#ifdef LFN_RECORD
#include "record.bpf.h"
#else
#define RECORD_CALL(call, sk, first, second)
#define RECORD_SAMPLE(fields, sample)
#define RECORD_RESULT(sk, value)
#endif

void lfn_law_needs_on_tick(void) __attribute__((error("on_tick has no kernel target yet")));
void lfn_law_needs_prediction(void) __attribute__((error("LAW_ACK_PREDICTED has no kernel target yet")));

/* None before init, which Linux calls when the handshake is over: the segments of the handshake come
 * before it, and are not the law's. */
static __always_inline struct flow *flow_of(struct sock *sk)
{
	return bpf_sk_storage_get(&flows, sk, 0, 0);
}

static __always_inline struct private *private_of(struct sock *sk)
{
	return (struct private *)((struct inet_connection_sock *)sk)->icsk_ca_priv;
}

/* A law with on_control has all of it. */
static __always_inline void *state_of(const struct law_ops *law, struct sock *sk)
{
	return law->on_control ? (void *)private_of(sk) : (void *)private_of(sk)->state;
}

/* Bitfields: a plain read is not relocated; it passes the verifier and reads another bit. */
static __always_inline u32 ca_state(struct sock *sk)
{
	return BPF_CORE_READ_BITFIELD((struct inet_connection_sock *)sk, icsk_ca_state);
}

static __always_inline u32 window_in_use(const struct tcp_sock *tp)
{
	if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
		return 1;
	/* As Linux: in slow start the window may reach twice what was in flight. */
	return tp->snd_cwnd < tp->snd_ssthresh && tp->snd_cwnd < 2 * tp->max_packets_out;
}

static __always_inline u32 inflight(const struct tcp_sock *tp)
{
	return tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out;
}

static __always_inline u64 min_rtt_ns(const struct tcp_sock *tp)
{
	u32 us = tp->rtt_min.s[0].v;

	return us == ~0u ? 0 : us * 1000ULL;
}

static __always_inline struct law_control control_of(const struct tcp_sock *tp)
{
	return (struct law_control){
		.cwnd = LAW_SEG(tp->snd_cwnd) | tp->snd_cwnd_cnt,
		.ssthresh = tp->snd_ssthresh >= TCP_INFINITE_SSTHRESH ? LAW_INFINITE
								     : LAW_SEG(tp->snd_ssthresh),
	};
}

static __always_inline void obey(struct tcp_sock *tp, const struct law_control *control)
{
	u64 cwnd = law_clamp(control->cwnd, LAW_ONE, LAW_SEG(tp->snd_cwnd_clamp));

	tp->snd_cwnd = cwnd >> 32;
	tp->snd_cwnd_cnt = (u32)cwnd;
	tp->snd_ssthresh = law_min(control->ssthresh >> 32, TCP_INFINITE_SSTHRESH);
}

/* Loss marking and state transitions come between pkts_acked and the later calls of one ACK. */
static __always_inline const struct law_ack *current_ack(struct sock *sk, struct flow *flow)
{
	const struct tcp_sock *tp = (struct tcp_sock *)sk;

	flow->ack.inflight = inflight(tp);
	flow->ack.flags &=
		~(LAW_ACK_OPEN | LAW_ACK_DISORDER | LAW_ACK_LOSS | LAW_ACK_CWND_LIMITED);
	if (ca_state(sk) == TCP_CA_Loss)
		flow->ack.flags |= LAW_ACK_LOSS;
	if (ca_state(sk) <= TCP_CA_Disorder)
		flow->ack.flags |= LAW_ACK_OPEN;
	if (ca_state(sk) == TCP_CA_Disorder)
		flow->ack.flags |= LAW_ACK_DISORDER;
	if (window_in_use(tp))
		flow->ack.flags |= LAW_ACK_CWND_LIMITED;
	return &flow->ack;
}

static __always_inline void tcp_init(const struct law_ops *law, u32 slow_start_kind,
				     struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct law_control control = control_of(tp);
	struct law_config config = {
		.now_ns = tp->tcp_mstamp * 1000,
		.srtt_ns = (tp->srtt_us >> 3) * 1000ULL,
		.variant = 0,
		.mss_B = tp->mss_cache,
		.seed = tp->snd_nxt, /* random for each connection (RFC 6528) */
	};
	struct flow *flow = bpf_sk_storage_get(&flows, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);

	if (law->on_tick)
		lfn_law_needs_on_tick();
	if (law->predicted & 1)
		lfn_law_needs_prediction();
	if (!flow)
		return;
	*private_of(sk) = (struct private){ 0 };
	*flow = (struct flow){
		.ack.delivered = tp->delivered,
		.lost = tp->lost,
		.delivered_ce = tp->delivered_ce,
		.round_end = tp->snd_nxt,
	};
	if (!law->on_control)
		slow_start_init(&private_of(sk)->slow_start, slow_start_kind);
	law->init(state_of(law, sk), &config, &control);
	obey(tp, &control);
	if (law->on_control) {
		sk->sk_pacing_rate = control.pacing_Bps;
		if (sk->sk_pacing_status == SK_PACING_NONE)
			sk->sk_pacing_status = SK_PACING_NEEDED;
	}
}

/* Every ACK of a law that owns window and rate. Linux does not tell what was lost, or in flight, when
 * a segment was sent. */
static __always_inline void tcp_cong_control(const struct law_ops *law, struct sock *sk,
					     const struct rate_sample *sample)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct law_control control = control_of(tp);
	struct flow *flow = flow_of(sk);
	struct law_rate rate = { .lost = tp->lost, .prior_lost = tp->lost };
	struct law_ack *ack;

	if (!flow)
		return;
	ack = &flow->ack;
	ack->now_ns = tp->tcp_mstamp * 1000;
	ack->rtt_ns = sample->rtt_us > 0 ? sample->rtt_us * 1000ULL : 0;
	ack->srtt_ns = (tp->srtt_us >> 3) * 1000ULL;
	ack->min_rtt_ns = min_rtt_ns(tp);
	ack->delivered += tp->delivered - (u32)ack->delivered;
	ack->newly_delivered = sample->acked_sacked;
	ack->newly_lost = sample->losses;
	ack->mss_B = tp->mss_cache;
	ack->inflight = inflight(tp);
	ack->hold_us = tp->tcp_wstamp_ns > ack->now_ns
			       ? (u32)law_min((tp->tcp_wstamp_ns - ack->now_ns) / 1000, ~0u) : 0;
	ack->flags = ca_state(sk) == TCP_CA_Loss ? LAW_ACK_LOSS
		     : ca_state(sk) == TCP_CA_Recovery ? LAW_ACK_RECOVERY : LAW_ACK_OPEN;
	rate.delivered = ack->delivered;
	rate.prior_delivered = ack->delivered;
	rate.prior_inflight = sample->prior_in_flight;
	if (sample->delivered >= 0 && sample->interval_us > 0) {
		rate.prior_delivered -= (u32)sample->delivered;
		rate.interval_ns = sample->interval_us * 1000ULL;
	}
	if (sample->is_app_limited)
		rate.flags = LAW_RATE_APP_LIMITED;
	control.pacing_Bps = sk->sk_pacing_rate;
	if (law->on_control(state_of(law, sk), ack, &rate, &control) & LAW_CONTROL_APP_LIMITED)
		tp->app_limited = law_max((u32)(tp->delivered + ack->inflight), 1);
	obey(tp, &control);
	sk->sk_pacing_rate = law_min(control.pacing_Bps, sk->sk_max_pacing_rate);
}

static __always_inline void tcp_restart(const struct law_ops *law, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct law_control control = control_of(tp);

	if (!tp->app_limited || !flow_of(sk))
		return;
	control.pacing_Bps = sk->sk_pacing_rate;
	law->on_restart(state_of(law, sk), tp->tcp_mstamp * 1000, &control);
	obey(tp, &control);
	sk->sk_pacing_rate = law_min(control.pacing_Bps, sk->sk_max_pacing_rate);
}

static __always_inline void tcp_pkts_acked(const struct law_ops *law, struct sock *sk,
					   const struct ack_sample *sample)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct law_control control = control_of(tp);
	struct flow *flow = flow_of(sk);
	s32 rtt_us = sample->rtt_us; /* negative: no sample */
	struct law_ack *ack;

	if (!flow)
		return;
	ack = &flow->ack;
	ack->now_ns = tp->tcp_mstamp * 1000;
	ack->rtt_ns = rtt_us > 0 ? (u32)rtt_us * 1000ULL : 0;
	ack->srtt_ns = (tp->srtt_us >> 3) * 1000ULL;
	ack->min_rtt_ns = min_rtt_ns(tp);
	/* Linux counts in 32 bits; the difference is right across a wrap. */
	ack->newly_delivered = tp->delivered - (u32)ack->delivered;
	ack->delivered += ack->newly_delivered;
	ack->acked = sample->pkts_acked;
	ack->newly_lost = tp->lost - flow->lost;
	ack->ce = tp->delivered_ce - flow->delivered_ce;
	ack->mss_B = tp->mss_cache;
	ack->flags = ack->acked ? 0 : LAW_ACK_DUP;
	if (sk->sk_pacing_status != SK_PACING_NONE)
		ack->flags |= LAW_ACK_PACED;
	if ((s32)(tp->snd_una - flow->round_end) > 0) {
		ack->flags |= LAW_ACK_ROUND_START;
		flow->round_end = tp->snd_nxt;
	}
	if (ack->rtt_ns)
		flow->rtt_ns = ack->rtt_ns;
	flow->lost = tp->lost;
	flow->delivered_ce = tp->delivered_ce;

	current_ack(sk, flow);
	slow_start_on_sample(&private_of(sk)->slow_start, ack, &control);
	if (law->on_sample)
		law->on_sample(private_of(sk)->state, ack, &control);
	obey(tp, &control);
}

static __always_inline void tcp_cong_avoid(const struct law_ops *law, struct sock *sk, u32 n)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct law_control control = control_of(tp);
	struct flow *flow = flow_of(sk);
	const struct law_ack *ack;

	if (!flow || !window_in_use(tp))
		return;
	ack = current_ack(sk, flow);
	if (control.cwnd < control.ssthresh)
		n = slow_start_on_ack(&private_of(sk)->slow_start, n, ack, &control);
	if (n)
		law->on_ack(private_of(sk)->state, n, ack, &control);
	obey(tp, &control);
	flow->fraction = tp->snd_cwnd_cnt;
}

/* Linux forgets the fraction of cwnd when a reduction begins, and that of ssthresh when it ends. A law that cuts by
 * less than a segment, each round trip, gets both back. */
static __always_inline void restore_fraction(struct sock *sk)
{
	const struct flow *flow = flow_of(sk);

	if (flow)
		((struct tcp_sock *)sk)->snd_cwnd_cnt = (u32)flow->fraction;
}

/* Linux says neither why it calls nor which state comes next. It is ECN if no ssthresh was kept
 * for an undo; it is a timeout if the state is Loss already, or if the recovery point is not yet
 * at snd_nxt (Recovery and CWR set it before, Loss after the call). */
static __always_inline u32 loss_kind(struct sock *sk)
{
	const struct tcp_sock *tp = (struct tcp_sock *)sk;

	if (!tp->prior_ssthresh)
		return LAW_LOSS_ECN;
	if (ca_state(sk) == TCP_CA_Loss || tp->high_seq != tp->snd_nxt)
		return LAW_LOSS_RTO;
	return LAW_LOSS_FAST;
}

static __always_inline u32 tcp_ssthresh(const struct law_ops *law, struct sock *sk)
{
	const struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct law_control control = control_of(tp);
	struct flow *flow = flow_of(sk);
	struct law_loss loss;

	if (!flow)
		return law_max(tp->snd_cwnd / 2, 2); /* RFC 5681 (4): for want of memory, or for a lost SYN */
	loss = (struct law_loss){
		.now_ns = tp->tcp_mstamp * 1000,
		.rtt_ns = flow->rtt_ns,
		.srtt_ns = (tp->srtt_us >> 3) * 1000ULL,
		.min_rtt_ns = min_rtt_ns(tp),
		.kind = loss_kind(sk),
		.inflight = inflight(tp),
		.mss_B = tp->mss_cache,
	};
	flow->reduced = 1;
	law->on_loss(state_of(law, sk), &loss, &control);
	if (loss.kind == LAW_LOSS_RTO)
		loss.inflight = tp->packets_out;
	if (!law->on_control)
		slow_start_on_loss(&private_of(sk)->slow_start, &loss);
	if (law->on_control)
		return tp->snd_ssthresh;
	control.ssthresh = law_clamp(control.ssthresh, LAW_MIN_SSTHRESH, LAW_MAX_CWND);
	flow->fraction = (u32)control.ssthresh;
	return control.ssthresh >> 32;
}

static __always_inline void open(const struct law_ops *law, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct law_control control = control_of(tp);
	struct flow *flow = flow_of(sk);

	if (!flow || !flow->reduced)
		return;
	flow->reduced = 0;
	if (law->on_open) {
		law->on_open(private_of(sk)->state, current_ack(sk, flow), &control);
		obey(tp, &control);
	}
}

/* A segment arrives, marked or not, and Linux has counted it in rcv_nxt if it is the next. The receiver of RFC 8257
 * section 3.2: an ACK has ECE if the segments that it covers were marked. Linux alone repeats ECE until a segment has
 * CWR (RFC 3168). */
static __always_inline void tcp_arrival(struct sock *sk, u32 ce)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct flow *flow = flow_of(sk);
	u8 silent = tp->ecn_flags & ~TCP_ECN_DEMAND_CWR;

	if (!flow)
		return;
	if (ce != flow->ce) {
		/* One ACK for the segments before it, if theirs waits, and one at once. */
		if ((s32)(flow->rcv_nxt - tp->rcv_wup) > 0) {
			tp->ecn_flags = flow->ce ? silent | TCP_ECN_DEMAND_CWR : silent;
			bpf_tcp_send_ack(tp, flow->rcv_nxt);
		}
		((struct inet_connection_sock *)sk)->icsk_ack.pending |= ICSK_ACK_NOW;
		/* After this call Linux sets the flag of a first mark itself, and begins its quick ACKs. */
		tp->ecn_flags = silent;
		flow->ce = ce;
	} else if (ce) {
		tp->ecn_flags = silent | TCP_ECN_DEMAND_CWR; /* CWR does not end the echo */
	}
	flow->rcv_nxt = tp->rcv_nxt;
}

static __always_inline u32 tcp_undo_cwnd(const struct law_ops *law, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct law_control control = control_of(tp);
	struct flow *flow = flow_of(sk);

	control.cwnd = law_max(control.cwnd, LAW_SEG(tp->prior_cwnd));
	control.ssthresh = law_max(control.ssthresh, LAW_SEG(tp->prior_ssthresh));
	if (flow) {
		flow->reduced = 0;
		if (law->on_undo)
			law->on_undo(state_of(law, sk), &control);
	}
	obey(tp, &control);
	return tp->snd_cwnd;
}

/* flags: TCP_CONG_NEEDS_ECN or 0. Any socket may choose the law, as if it stood in
 * net.ipv4.tcp_allowed_congestion_control: so no sysctl changes, and none is left to put back. */
#define LFN_TCP_LAW(law, slow_start_kind, law_flags)						\
	SEC("license") char _license[] = "Dual MIT/GPL";					\
												\
	SEC("struct_ops/init") void BPF_PROG(init, struct sock *sk)				\
	{											\
		RECORD_CALL(INIT, sk, 0, 0);							\
		tcp_init(&law_ops_##law, slow_start_kind, sk);					\
		RECORD_RESULT(sk, 0);								\
	}											\
	SEC("struct_ops/pkts_acked")								\
	void BPF_PROG(pkts_acked, struct sock *sk, const struct ack_sample *sample)		\
	{											\
		RECORD_CALL(PKTS_ACKED, sk, 0, 0);						\
		RECORD_SAMPLE(ACK_SAMPLE, sample);						\
		tcp_pkts_acked(&law_ops_##law, sk, sample);					\
		RECORD_RESULT(sk, 0);								\
	}											\
	SEC("struct_ops/cong_avoid")								\
	void BPF_PROG(cong_avoid, struct sock *sk, u32 ack, u32 acked)				\
	{											\
		RECORD_CALL(CONG_AVOID, sk, ack, acked);					\
		tcp_cong_avoid(&law_ops_##law, sk, acked);					\
		RECORD_RESULT(sk, 0);								\
	}											\
	SEC("struct_ops/ssthresh") u32 BPF_PROG(ssthresh, struct sock *sk)			\
	{											\
		RECORD_CALL(SSTHRESH, sk, 0, 0);						\
		if ((law_flags) & TCP_CONG_NEEDS_ECN)						\
			restore_fraction(sk);							\
		u32 ssthresh = tcp_ssthresh(&law_ops_##law, sk);				\
												\
		RECORD_RESULT(sk, ssthresh);							\
		return ssthresh;								\
	}											\
	SEC("struct_ops/cwnd_event")								\
	void BPF_PROG(cwnd_event, struct sock *sk, enum tcp_ca_event event)			\
	{											\
		/* Linux tells marks to laws that need ECN only. */				\
		if ((law_flags) & TCP_CONG_NEEDS_ECN && event >= CA_EVENT_ECN_NO_CE) {		\
			tcp_arrival(sk, event == CA_EVENT_ECN_IS_CE);				\
			return;									\
		}										\
		RECORD_CALL(CWND_EVENT, sk, event, 0);						\
		if (event == CA_EVENT_COMPLETE_CWR) {						\
			if ((law_flags) & TCP_CONG_NEEDS_ECN)					\
				restore_fraction(sk);						\
			open(&law_ops_##law, sk);						\
		}										\
		RECORD_RESULT(sk, 0);								\
	}											\
	SEC("struct_ops/set_state") void BPF_PROG(set_state, struct sock *sk, u8 new_state)	\
	{											\
		RECORD_CALL(SET_STATE, sk, new_state, 0);					\
		/* CWR and Recovery end with CA_EVENT_COMPLETE_CWR. */				\
		if (new_state == TCP_CA_Open && ca_state(sk) == TCP_CA_Loss)			\
			open(&law_ops_##law, sk);						\
		RECORD_RESULT(sk, 0);								\
	}											\
	SEC("struct_ops/undo_cwnd") u32 BPF_PROG(undo_cwnd, struct sock *sk)			\
	{											\
		RECORD_CALL(UNDO_CWND, sk, 0, 0);						\
		u32 cwnd = tcp_undo_cwnd(&law_ops_##law, sk);					\
												\
		RECORD_RESULT(sk, cwnd);							\
		return cwnd;									\
	}											\
	SEC(".struct_ops") struct tcp_congestion_ops lfn_##law = {				\
		.init = (void *)init,								\
		.pkts_acked = (void *)pkts_acked,						\
		.cong_avoid = (void *)cong_avoid,						\
		.ssthresh = (void *)ssthresh,							\
		.cwnd_event = (void *)cwnd_event,						\
		.set_state = (void *)set_state,							\
		.undo_cwnd = (void *)undo_cwnd,							\
		.flags = TCP_CONG_NON_RESTRICTED | (law_flags),					\
		.name = "lfn_" #law,								\
	}

/* The same for a law with on_control. */
#define LFN_TCP_CONTROL_LAW(law, law_flags)							\
	_Static_assert(sizeof(struct law) <= LAW_PRIVATE_BYTES, #law ": exceeds icsk_ca_priv");	\
	SEC("license") char _license[] = "Dual MIT/GPL";					\
												\
	SEC("struct_ops/init") void BPF_PROG(init, struct sock *sk)				\
	{											\
		RECORD_CALL(INIT, sk, 0, 0);							\
		tcp_init(&law_ops_##law, 0, sk);						\
		RECORD_RESULT(sk, 0);								\
	}											\
	SEC("struct_ops/cong_control")								\
	void BPF_PROG(cong_control, struct sock *sk, u32 ack, int flag,				\
		      const struct rate_sample *sample)						\
	{											\
		RECORD_CALL(CONG_CONTROL, sk, 0, 0);						\
		RECORD_SAMPLE(RATE_SAMPLE, sample);						\
		tcp_cong_control(&law_ops_##law, sk, sample);					\
		RECORD_RESULT(sk, 0);								\
	}											\
	SEC("struct_ops/ssthresh") u32 BPF_PROG(ssthresh, struct sock *sk)			\
	{											\
		RECORD_CALL(SSTHRESH, sk, 0, 0);						\
		u32 ssthresh = tcp_ssthresh(&law_ops_##law, sk);				\
												\
		RECORD_RESULT(sk, ssthresh);							\
		return ssthresh;								\
	}											\
	SEC("struct_ops/cwnd_event")								\
	void BPF_PROG(cwnd_event, struct sock *sk, enum tcp_ca_event event)			\
	{											\
		RECORD_CALL(CWND_EVENT, sk, event, 0);						\
		if (event == CA_EVENT_TX_START)							\
			tcp_restart(&law_ops_##law, sk);					\
		RECORD_RESULT(sk, 0);								\
	}											\
	SEC("struct_ops/undo_cwnd") u32 BPF_PROG(undo_cwnd, struct sock *sk)			\
	{											\
		RECORD_CALL(UNDO_CWND, sk, 0, 0);						\
		u32 cwnd = tcp_undo_cwnd(&law_ops_##law, sk);					\
												\
		RECORD_RESULT(sk, cwnd);							\
		return cwnd;									\
	}											\
	SEC(".struct_ops") struct tcp_congestion_ops lfn_##law = {				\
		.init = (void *)init,								\
		.cong_control = (void *)cong_control,						\
		.ssthresh = (void *)ssthresh,							\
		.cwnd_event = (void *)cwnd_event,						\
		.undo_cwnd = (void *)undo_cwnd,							\
		.flags = TCP_CONG_NON_RESTRICTED | (law_flags),					\
		.name = "lfn_" #law,								\
	}

#endif
