/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A law of laws, for searches: a growth, a back-off, and what both are while the queue is empty.
 *
 *   growth   cubic (0) or the clock of H-TCP (1), `speed` times as fast
 *   back-off keeps `keep` of the window; with `memory`, what Westwood+ measured, if that is more
 *   gate     the queue is empty while RTT - RTT_min <= `gate` ms; 0: never
 *   empty    a loss keeps `hold`, and above the window of the last congestion the window grows by `probe` of itself a
 *            round trip. A loss of more than `heavy` of the segments is congestion whatever the queue: then nothing is
 *            held until a loss comes with a queue.
 *
 * With the gate closed and the defaults it is CUBIC of RFC 9438.
 */
#ifndef LFN_GRAMMAR_H
#define LFN_GRAMMAR_H

#include "bandwidth.h"
#include "cubic.h"
#include "htcp_alpha.h"

#define GRAMMAR_GROWTH 0u /* parameters, in the order of the registry line */
#define GRAMMAR_SPEED 1u
#define GRAMMAR_KEEP 2u
#define GRAMMAR_MEMORY 3u
#define GRAMMAR_GATE 4u
#define GRAMMAR_HOLD 5u
#define GRAMMAR_PROBE 6u
#define GRAMMAR_HEAVY 7u

#define GRAMMAR_FEW 8u   /* lost segments beyond `heavy` are many if they are more than this, */
#define GRAMMAR_MANY 32u /* and at most this, */
#define GRAMMAR_PART 64u /* and in between than this part of the window */
#define GRAMMAR_SETTLE 8u /* round trips after a cut in which a loss is part of what was cut for */

struct grammar {
	struct cubic_curve curve;
	struct htcp_clock clock;
	struct bandwidth bandwidth;
	u64 known;      /* window of the last congestion, Q32.32; 0: none yet */
	u64 gate_ns;
	u64 deep_ns;    /* the longest queue so far that two samples in a row saw */
	u64 queue_ns;   /* of the newest sample */
	u64 cut_ns;     /* the last congestion; 0: none yet */
	u64 bucket_q20; /* lost segments beyond `heavy` of those delivered */
	u64 alpha;      /* of the AIMD flow, Q32 */
	u32 speed_q20;  /* H-TCP: of the gain; CUBIC: of the clock, whose curve is then as much faster */
	u32 keep_q20;
	u32 hold_q20;
	u32 probe_q20;
	u32 heavy_q20;
	u8 htcp;
	u8 memory;
	u8 blind;       /* many were lost without a queue */
	u8 random;      /* a loss was held since the last congestion */
	u8 held;        /* in the episode under way */
};

static inline void grammar_init(void *state, const struct law_config *config, struct law_control *control)
{
	struct grammar *s = state;
	const u64 *p = config->parameters;

	(void)control;
	s->htcp = (u8)(p[GRAMMAR_GROWTH] / LAW_PARAMETER_ONE);
	s->memory = (u8)(p[GRAMMAR_MEMORY] / LAW_PARAMETER_ONE);
	/* C f^3 is the curve of a clock that runs f times as fast. */
	s->speed_q20 = s->htcp ? (u32)p[GRAMMAR_SPEED] : cubic_root(p[GRAMMAR_SPEED] << 40);
	s->keep_q20 = (u32)p[GRAMMAR_KEEP];
	s->hold_q20 = (u32)p[GRAMMAR_HOLD];
	s->probe_q20 = (u32)p[GRAMMAR_PROBE];
	s->heavy_q20 = (u32)p[GRAMMAR_HEAVY];
	s->gate_ns = p[GRAMMAR_GATE] * 15625 >> 14; /* ms: 10^6 / 2^20 */
	s->alpha = 3 * (u64)(LAW_PARAMETER_ONE - s->keep_q20) * LAW_ONE / (LAW_PARAMETER_ONE + s->keep_q20);
	s->curve.new_epoch = 1;
	bandwidth_init(&s->bandwidth, config->now_ns);
	htcp_clock_start(&s->clock, config->now_ns, 1024);
}

static inline u64 grammar_part(u64 w, u32 part_q20) { return (w >> 20) * part_q20; }

static inline u64 grammar_fast(const struct grammar *s, u64 t_ns) { return law_muldiv(t_ns, s->speed_q20, LAW_PARAMETER_ONE); }

/* In a shallow buffer the queue is empty at half of the longest one. */
static inline int grammar_is_empty(const struct grammar *s, u64 rtt_ns, u64 min_rtt_ns)
{
	return rtt_ns && rtt_ns - min_rtt_ns < law_clamp(s->deep_ns / 2, s->gate_ns / 8, s->gate_ns);
}

/* Lost segments beyond `heavy` that are many in a window of w, Q20. */
static inline u64 grammar_most(u64 w) { return law_clamp(w / GRAMMAR_PART >> 32, GRAMMAR_FEW, GRAMMAR_MANY) << 20; }

static inline void grammar_on_sample(void *state, const struct law_ack *ack, struct law_control *control)
{
	struct grammar *s = state;
	u64 bucket = s->bucket_q20 + ((u64)ack->newly_lost << 20);

	s->bucket_q20 = law_min(bucket - law_min(bucket, (u64)ack->newly_delivered * s->heavy_q20), 2 * grammar_most(control->cwnd));
	if (ack->rtt_ns) { /* an ACK that the receiver delayed is alone */
		s->deep_ns = law_max(s->deep_ns, law_min(s->queue_ns, ack->rtt_ns - ack->min_rtt_ns));
		s->queue_ns = ack->rtt_ns - ack->min_rtt_ns;
	}
	bandwidth_on_sample(&s->bandwidth, ack, 0);
	cubic_curve_on_sample(&s->curve, grammar_fast(s, ack->now_ns), ack->flags);
}

static inline int grammar_probes(const struct grammar *s, const struct law_ack *ack, u64 w)
{
	return s->random && s->probe_q20 && w >= s->known && grammar_is_empty(s, ack->rtt_ns, ack->min_rtt_ns);
}

static inline void grammar_on_ack(void *state, u32 n, const struct law_ack *ack, struct law_control *control)
{
	struct grammar *s = state;
	struct law_ack fast = *ack;

	if (ack->flags & LAW_ACK_CWND_LIMITED && grammar_probes(s, ack, control->cwnd)) {
		control->cwnd = law_min(control->cwnd + (u64)n * s->probe_q20 * (LAW_ONE >> 20), LAW_MAX_CWND);
		s->curve.w_max = 0; /* the next epoch begins here */
		s->curve.new_epoch = 1;
	} else if (s->htcp) {
		law_add_per_rtt(control, law_muldiv(htcp_clock_gain_q16(&s->clock, ack->now_ns), s->speed_q20, LAW_PARAMETER_ONE), n);
	} else {
		fast.now_ns = grammar_fast(s, ack->now_ns);
		fast.srtt_ns = grammar_fast(s, ack->srtt_ns);
		cubic_curve_grow(&s->curve, s->alpha, n, &fast, control);
	}
}

static inline u64 grammar_cut(struct grammar *s, u64 w, u64 now_ns, u32 mss_B, u32 kind)
{
	u64 kept = grammar_part(w, s->keep_q20);

	cubic_curve_end(&s->curve, w, w / 2 + grammar_part(w / 2, s->keep_q20), kind);
	htcp_clock_on_loss(&s->clock, now_ns, 1024);
	s->known = s->curve.w_max;
	s->cut_ns = now_ns;
	s->random = 0;
	s->bucket_q20 = 0;
	if (s->memory && s->bandwidth.bwe_Bps)
		kept = law_max(kept, law_min(bandwidth_window(&s->bandwidth, mss_B), w));
	return law_max(kept, LAW_MIN_SSTHRESH);
}

static inline void grammar_on_loss(void *state, const struct law_loss *loss, struct law_control *control)
{
	struct grammar *s = state;
	u64 w = control->cwnd;
	int settled, many = s->bucket_q20 > grammar_most(w);
	int empty = loss->kind == LAW_LOSS_FAST && grammar_is_empty(s, loss->rtt_ns, loss->min_rtt_ns);

	if (!empty)
		s->blind = 0;
	settled = !s->cut_ns || s->deep_ns >= s->gate_ns || loss->now_ns - s->cut_ns >= GRAMMAR_SETTLE * loss->srtt_ns;
	s->held = empty && settled && !s->blind && !many && w >= control->ssthresh && LAW_SEG(loss->inflight) >= w / 2;
	if (!s->held) {
		s->blind |= empty && many;
		control->ssthresh = grammar_cut(s, w, loss->now_ns, loss->mss_B, loss->kind);
		return;
	}
	s->random = 1;
	s->curve.undo_w_max = s->curve.w_max;
	s->curve.undo_cwnd_prior = s->curve.cwnd_prior;
	s->curve.undo_new_epoch = s->curve.new_epoch;
	s->clock.undo_event_ns = s->clock.event_ns;
	control->ssthresh = law_max(grammar_part(w, s->hold_q20), LAW_MIN_SSTHRESH);
	if (s->hold_q20 < LAW_PARAMETER_ONE)
		s->curve.new_epoch = 1; /* towards w_max again */
}

static inline void grammar_on_open(void *state, const struct law_ack *ack, struct law_control *control)
{
	struct grammar *s = state;

	if (s->held && s->bucket_q20 > grammar_most(control->ssthresh)) {
		s->blind = 1;
		control->ssthresh = grammar_cut(s, control->ssthresh, ack->now_ns, ack->mss_B, LAW_LOSS_FAST);
		control->cwnd = control->ssthresh;
	} else if (s->held && grammar_probes(s, ack, control->cwnd)) {
		/* With a loss in every round trip no ACK comes in state Open. */
		control->cwnd = law_min(control->cwnd + grammar_part(control->cwnd, s->probe_q20), LAW_MAX_CWND);
	}
	s->held = 0;
}

static inline void grammar_on_undo(void *state, struct law_control *control)
{
	struct grammar *s = state;

	(void)control;
	cubic_curve_undo(&s->curve);
	s->known = s->curve.w_max;
	htcp_clock_undo(&s->clock);
	s->held = 0;
}

static inline void grammar_probe(const void *state, const struct law_control *control, u64 *out)
{
	const struct grammar *s = state;

	(void)control;
	out[0] = s->known;
	out[1] = s->blind;
	out[2] = s->bucket_q20;
}

LAW_WIDE_OPS(grammar, .on_sample = grammar_on_sample, .on_open = grammar_on_open, .on_undo = grammar_on_undo,
	     .probe = grammar_probe);

#endif
