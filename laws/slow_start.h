/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Four slow starts, which run before congestion avoidance, under the same rules as a law.
 *
 * The sender calls, while cwnd < ssthresh: on_sample on every ACK, then on_ack with the segments
 * newly acknowledged; what on_ack returns is left for the law. On a congestion event it calls
 * on_loss. on_sample may set ssthresh = cwnd, which ends slow start before this ACK's growth.
 *
 *   classic    +1 a segment (RFC 5681, counted in segments as Linux does).
 *   limited    RFC 3742 with max_ssthresh = 100: above it at most 50 segments a round trip.
 *   hystart    Linux's HyStart: leave on a long ACK train or on a rise of the RTT. It acts at 16
 *              segments and above, once, and again after a timeout.
 *   hystart++  RFC 9406: on a rise of the RTT grow four times slower, leave after five rounds.
 *              First slow start only.
 *
 * Rounds are counted as in Linux: a round ends when what was in flight at its start is delivered.
 */
#ifndef LFN_SLOW_START_H
#define LFN_SLOW_START_H

#include "law.h"

#define SLOW_START_CLASSIC 0u
#define SLOW_START_LIMITED 1u
#define SLOW_START_HYSTART 2u
#define SLOW_START_HYSTART_PP 3u

#define LIMITED_SSTHRESH 100u /* RFC 3742 max_ssthresh, segments */

#define SLOW_START_NO_ROUND 255u
#define HYSTART_LOW_WINDOW LAW_SEG(16)
#define HYSTART_ACK_DELTA_US 2000u     /* ACKs closer than this are one train */
#define HYSTART_ACK_DELAY_MAX_US 1000u
#define HYSTART_GSO_BYTES 65536u       /* Linux's gso_max_size: the largest burst of the sender */
#define HYSTART_SAMPLES 8u             /* also N_RTT_SAMPLE of RFC 9406 */
#define HYSTART_THRESH_MIN_US 4000u    /* also MIN_RTT_THRESH */
#define HYSTART_THRESH_MAX_US 16000u   /* also MAX_RTT_THRESH */
#define HYSTART_PP_L 8u                /* largest growth an ACK when not paced, segments */
#define HYSTART_PP_CSS_DIVISOR 4u
#define HYSTART_PP_CSS_ROUNDS 5u

struct slow_start {
	u8 kind;           /* SLOW_START_* */
	u8 done;           /* it has left slow start and watches no more */
	u8 samples;        /* RTT samples of this round, up to HYSTART_SAMPLES; NO_ROUND at first */
	u8 css_round;      /* hystart++: 0 in slow start, else which round of CSS this is */
	s32 round_left;    /* segments that the cumulative ACK covers until the round ends; then negative */
	u32 round_min_us;  /* smallest RTT of the round; ~0: none yet */
	u32 min_us;        /* hystart: smallest RTT ever; hystart++: of the last round; ~0: none */
	union {
		struct {
			u32 round_start_us; /* hystart; clocks are low bits */
			u32 last_ack_us;    /* last ACK of the train */
		};
		u32 css_base_us; /* hystart++: cssBaselineMinRtt */
	};
};
_Static_assert(sizeof(struct slow_start) <= 24, "slow start shares icsk_ca_priv with a law");

static inline void slow_start_init(struct slow_start *s, u32 kind)
{
	s->kind = (u8)kind;
	s->done = 0;
	s->samples = SLOW_START_NO_ROUND;
	s->css_round = 0;
	s->round_left = 0;
	s->round_min_us = ~0u;
	s->min_us = ~0u;
	s->round_start_us = 0;
	s->last_ack_us = 0;
}

/* Adds `step` (Q32 segments) for each of n segments, up to `limit`; returns the segments unused. */
static inline u32 slow_start_grow(struct law_control *c, u64 step, u64 limit, u32 n)
{
	u64 room = limit - law_min(c->cwnd, limit);
	u64 used;

	if (step * n <= room) {
		c->cwnd += step * n;
		return 0;
	}
	used = (room + step - 1) / step;
	c->cwnd = law_max(c->cwnd, limit);
	return n - (u32)used;
}

static inline u32 slow_start_paced(const struct law_ack *ack, const struct law_control *control)
{
	return control->pacing_Bps || ack->flags & LAW_ACK_PACED;
}

static inline u32 slow_start_on_ack(struct slow_start *s, u32 n, const struct law_ack *ack,
				    struct law_control *control)
{
	u64 limit = law_min(control->ssthresh, LAW_MAX_CWND);
	u32 rest = n;

	switch (s->kind) {
	case SLOW_START_LIMITED:
		rest = slow_start_grow(control, LAW_ONE, law_min(limit, LAW_SEG(LIMITED_SSTHRESH)), n);
		if (rest) {
			u64 k = (control->cwnd >> 32) / (LIMITED_SSTHRESH / 2); /* RFC 3742 section 2 */

			rest = slow_start_grow(control, LAW_ONE / law_max(k, 1), limit, rest);
		}
		break;
	case SLOW_START_HYSTART_PP:
		if (!s->done && !slow_start_paced(ack, control))
			rest = (u32)law_min(n, HYSTART_PP_L);
		rest = n - rest + slow_start_grow(control, s->css_round ? LAW_ONE / HYSTART_PP_CSS_DIVISOR
									: LAW_ONE,
						  limit, rest);
		break;
	default:
		rest = slow_start_grow(control, LAW_ONE, limit, n);
	}
	/* At LAW_MAX_CWND below ssthresh nothing is left for congestion avoidance. */
	return control->cwnd < control->ssthresh ? 0 : rest;
}

/* `inflight` of the loss: after a timeout, all that is not cumulatively acknowledged, received or not. Linux's HyStart
 * begins a round at the timeout, which the ACK of all that ends: in a recovery before, ACKs are no train. */
static inline void hystart_on_timeout(struct slow_start *s, const struct law_loss *loss)
{
	slow_start_init(s, SLOW_START_HYSTART);
	s->samples = 0;
	s->round_left = (s32)loss->inflight;
	s->round_start_us = (u32)(loss->now_ns / 1000);
	s->last_ack_us = s->round_start_us;
}

/* Begins a round if this ACK does; returns whether. SACKs do not end one: as in Linux, the cumulative ACK must cover what
 * was in flight at its start. */
static inline u32 slow_start_round(struct slow_start *s, const struct law_ack *ack)
{
	if (s->samples != SLOW_START_NO_ROUND && s->round_left >= 0)
		return 0;
	s->round_left = (s32)ack->inflight;
	s->samples = 0;
	return 1;
}

static inline u32 slow_start_thresh_us(u32 rtt_us)
{
	return (u32)law_clamp(rtt_us >> 3, HYSTART_THRESH_MIN_US, HYSTART_THRESH_MAX_US);
}

static inline void hystart_on_sample(struct slow_start *s, const struct law_ack *ack, u32 rtt_us,
				     struct law_control *control)
{
	u32 now_us = (u32)(ack->now_ns / 1000);

	s->min_us = (u32)law_min(s->min_us, rtt_us);
	if (slow_start_round(s, ack)) {
		s->round_start_us = now_us;
		s->last_ack_us = now_us;
		s->round_min_us = ~0u;
	}
	if (control->cwnd < HYSTART_LOW_WINDOW)
		return;
	if (now_us - s->last_ack_us <= HYSTART_ACK_DELTA_US) {
		/* Four bursts at the pacing rate that Linux assumes: 2 * cwnd * mss / srtt. */
		u64 rate_Bps_us = 2 * (control->cwnd >> 32) * ack->mss_B;
		u64 burst_us = 4ull * HYSTART_GSO_BYTES * law_min(ack->srtt_ns / 1000, ~0u);
		u64 train_us = s->min_us + law_min(burst_us / law_max(rate_Bps_us, 1), HYSTART_ACK_DELAY_MAX_US);

		s->last_ack_us = now_us;
		if (!slow_start_paced(ack, control))
			train_us >>= 1;
		s->done = now_us - s->round_start_us > train_us;
	}
	s->round_min_us = (u32)law_min(s->round_min_us, rtt_us);
	if (s->samples < HYSTART_SAMPLES)
		s->samples++;
	else if (s->round_min_us > (u64)s->min_us + slow_start_thresh_us(s->min_us))
		s->done = 1;
	if (s->done)
		control->ssthresh = control->cwnd;
}

/* RFC 9406 section 4.2. */
static inline void hystart_pp_on_sample(struct slow_start *s, const struct law_ack *ack, u32 rtt_us,
					struct law_control *control)
{
	if (slow_start_round(s, ack)) {
		s->min_us = s->round_min_us;
		s->round_min_us = ~0u;
		if (s->css_round && ++s->css_round > HYSTART_PP_CSS_ROUNDS) {
			s->done = 1;
			s->css_round = 0;
			control->ssthresh = control->cwnd;
			return;
		}
	}
	s->round_min_us = (u32)law_min(s->round_min_us, rtt_us);
	if (s->samples < HYSTART_SAMPLES)
		s->samples++;
	if (s->samples < HYSTART_SAMPLES)
		return;
	if (s->css_round) {
		if (s->round_min_us < s->css_base_us)
			s->css_round = 0; /* the rise was spurious */
	} else if (s->min_us != ~0u && s->round_min_us >= (u64)s->min_us + slow_start_thresh_us(s->min_us)) {
		s->css_base_us = s->round_min_us;
		s->css_round = 1;
	}
}

static inline void slow_start_on_sample(struct slow_start *s, const struct law_ack *ack,
					struct law_control *control)
{
	u32 rtt_us = (u32)law_clamp(ack->rtt_ns / 1000, 1, ~0u - 1);

	if (s->done)
		return;
	s->round_left = s->round_left < (s32)ack->acked ? -1 : s->round_left - (s32)ack->acked;
	if (control->cwnd >= control->ssthresh || !ack->rtt_ns)
		return;
	if (s->kind == SLOW_START_HYSTART)
		hystart_on_sample(s, ack, rtt_us, control);
	else if (s->kind == SLOW_START_HYSTART_PP)
		hystart_pp_on_sample(s, ack, rtt_us, control);
}

static inline void slow_start_on_loss(struct slow_start *s, const struct law_loss *loss)
{
	if (s->kind == SLOW_START_HYSTART_PP) {
		s->done = 1;
		s->css_round = 0;
	} else if (loss->kind == LAW_LOSS_RTO && s->kind == SLOW_START_HYSTART) {
		hystart_on_timeout(s, loss);
	}
}

#endif
