/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* TCP-Illinois (Liu, Basar, Srikant, VALUETOOLS 2006): an AIMD whose increase shrinks and whose
 * decrease grows with the queueing delay. Losses decide when the window falls, delay by how much and
 * how fast it comes back: fast far from the last queue, slowly near it, hence a concave sawtooth.
 *
 *   paper  the window to 2^-32 of a segment
 *   linux  whole segments, alpha in 128ths, b in 64ths; a round that ends during an episode lasts to
 *          the episode's end; the ACK that ends one counts all that it covers (measured)
 */
#ifndef LFN_ILLINOIS_H
#define LFN_ILLINOIS_H

#include "law.h"

#define ILLINOIS_LINUX 1u
#define ILLINOIS_ALPHA_MAX_Q16 (10u << 16)
#define ILLINOIS_ALPHA_BASE_Q16 (1u << 16)
#define ILLINOIS_B_MIN_Q16 (1u << 13)  /* 1/8 */
#define ILLINOIS_B_MAX_Q16 (1u << 15)  /* 1/2 */
#define ILLINOIS_WINDOW LAW_SEG(15)    /* below it, Reno */
#define ILLINOIS_THETA 5u              /* rounds without a queue before alpha returns to its maximum */

struct illinois {
	u64 sum_us;   /* of the RTT samples of the round under way */
	u32 samples;
	u32 base_us;  /* smallest RTT of the connection; 0 before the first sample */
	u32 max_us;   /* largest */
	u32 alpha_q16; /* segments per round trip */
	u32 b_q16;     /* fraction removed at a loss */
	u32 cnt;       /* linux: segments acknowledged towards the next one */
	u32 round_end; /* linux: deliveries at which the round under way ends, modulo 2^32 */
	u16 variant;
	u8 above;      /* a queue was seen since alpha last was at its maximum */
	u8 low;        /* rounds without one in a row */
	u8 in_loss;    /* linux */
	u8 opens;      /* linux: the current ACK ends an episode */
	u8 begins;     /* linux: it begins one, maybe after it ended another */
};

static inline void illinois_reset(struct illinois *s)
{
	s->alpha_q16 = ILLINOIS_ALPHA_BASE_Q16;
	s->b_q16 = ILLINOIS_B_MAX_Q16;
	s->above = 0;
	s->low = 0;
}

static inline void illinois_init(void *state, const struct law_config *config, struct law_control *control)
{
	struct illinois *s = state;

	(void)control;
	s->variant = (u16)config->variant;
	illinois_reset(s);
}

/* da and dm: mean queueing delay of the round and the largest of the connection. alpha =
 * k1/(k2 + da) through (d1, alpha_max) and (dm, alpha_min), d1 = dm/100. */
static inline void illinois_set_alpha(struct illinois *s, u64 da, u64 dm)
{
	u64 d1 = dm / 100;

	if (da > d1) {
		s->above = 1;
		s->low = 0;
		/* alpha_max/alpha_min - 1; linux: alpha_min is 38/128 (measured). */
		u64 steep = s->variant == ILLINOIS_LINUX ? (da - d1) * 1242 / 38 : (da - d1) * 97 / 3;

		s->alpha_q16 = (u32)(((dm - d1) * 10 << 16) / (dm - d1 + steep));
		return;
	}
	s->low++;
	if (s->above && s->low < ILLINOIS_THETA)
		return;
	s->above = 0;
	s->low = 0;
	s->alpha_q16 = ILLINOIS_ALPHA_MAX_Q16;
}

/* b: linear in da from (0.1 dm, 1/8) to (0.8 dm, 1/2). */
static inline void illinois_set_b(struct illinois *s, u64 da, u64 dm)
{
	u64 slope_q16 = ILLINOIS_B_MAX_Q16 - ILLINOIS_B_MIN_Q16;

	if (10 * da <= dm)
		s->b_q16 = ILLINOIS_B_MIN_Q16;
	else if (10 * da >= 8 * dm)
		s->b_q16 = ILLINOIS_B_MAX_Q16;
	else
		s->b_q16 = ILLINOIS_B_MIN_Q16 + (u32)(slope_q16 * (10 * da - dm) / (7 * dm));
}

/* linux: alpha in 128ths, b in 64ths. */
static inline void illinois_round_down(struct illinois *s)
{
	if (s->variant == ILLINOIS_LINUX) {
		s->alpha_q16 &= ~511u;
		s->b_q16 &= ~1023u;
	}
}

static inline void illinois_end_round(struct illinois *s, const struct law_ack *ack, u64 w)
{
	/* paper: samples of an episode do not count, since its queue is not that of the window. */
	if (s->samples && (ack->flags & LAW_ACK_OPEN || s->opens)) {
		u64 da = s->sum_us / s->samples - s->base_us, dm = s->max_us - s->base_us;

		if (w < ILLINOIS_WINDOW) {
			s->alpha_q16 = ILLINOIS_ALPHA_BASE_Q16;
			s->b_q16 = ILLINOIS_B_MAX_Q16;
		} else {
			illinois_set_alpha(s, da, dm);
			illinois_set_b(s, da, dm);
			illinois_round_down(s);
		}
	}
	s->sum_us = 0;
	s->samples = 0;
}

/* linux: a round begins with the ACK that ended the last one, and that may be one that ends an episode, but none that
 * begins one (measured). */
static inline int illinois_starts_round(struct illinois *s, const struct law_ack *ack)
{
	if (s->variant != ILLINOIS_LINUX)
		return !!(ack->flags & LAW_ACK_ROUND_START);
	if (!ack->acked || s->begins || !(ack->flags & LAW_ACK_OPEN || s->opens) ||
	    (s32)((u32)ack->delivered - s->round_end) <= 0)
		return 0;
	s->round_end = (u32)ack->delivered + ack->inflight;
	return 1;
}

static inline void illinois_on_sample(void *state, const struct law_ack *ack, struct law_control *control)
{
	struct illinois *s = state;

	if (s->variant == ILLINOIS_LINUX && law_enters_loss(&s->in_loss, ack))
		illinois_reset(s);
	if (ack->rtt_ns) {
		u32 rtt_us = (u32)law_clamp(ack->rtt_ns / 1000, 1, ~0U >> 1);

		if (!s->base_us || rtt_us < s->base_us)
			s->base_us = rtt_us;
		if (rtt_us > s->max_us)
			s->max_us = rtt_us;
		s->sum_us += rtt_us;
		s->samples++;
	}
	if (illinois_starts_round(s, ack))
		illinois_end_round(s, ack, control->cwnd);
	s->opens = 0;
	s->begins = 0;
}

static inline void illinois_on_open(void *state, const struct law_ack *ack, struct law_control *control)
{
	struct illinois *s = state;

	(void)ack;
	(void)control;
	s->opens = s->variant == ILLINOIS_LINUX;
}

static inline void illinois_on_ack(void *state, u32 n, const struct law_ack *ack, struct law_control *control)
{
	struct illinois *s = state;

	if (s->variant == ILLINOIS_LINUX) {
		u64 w = control->cwnd >> 32;

		s->cnt += ack->acked;
		if ((u64)s->cnt * s->alpha_q16 >> 16 >= w) {
			control->cwnd += LAW_SEG(((u64)s->cnt * s->alpha_q16 >> 16) / w);
			control->cwnd = law_min(control->cwnd, LAW_MAX_CWND);
			s->cnt = 0;
		}
	} else {
		law_add_per_rtt(control, s->alpha_q16, n);
	}
}

static inline void illinois_on_loss(void *state, const struct law_loss *loss, struct law_control *control)
{
	struct illinois *s = state;
	u64 w = control->cwnd;

	if (s->variant == ILLINOIS_LINUX)
		w = LAW_SEG((w >> 32) - ((w >> 32) * s->b_q16 >> 16));
	else
		w -= (w >> 16) * s->b_q16;
	control->ssthresh = law_max(w, LAW_MIN_SSTHRESH);
	s->begins = s->variant == ILLINOIS_LINUX;
	s->cnt = 0;
	if (loss->kind == LAW_LOSS_RTO)
		illinois_reset(s);
}

static inline void illinois_probe(const void *state, const struct law_control *control, u64 *out)
{
	const struct illinois *s = state;

	(void)control;
	out[0] = s->alpha_q16;
	out[1] = s->b_q16;
	out[2] = s->base_us;
	out[3] = s->max_us;
}

LAW_OPS(illinois, .on_sample = illinois_on_sample, .on_open = illinois_on_open, .probe = illinois_probe);

#endif
