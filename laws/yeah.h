/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* YeAH-TCP (Baiocchi, Castellani, Vacirca, PFLDnet 2007). While few of its segments queue it grows as
 * Scalable TCP; with a queue it grows as Reno, and at Q_max segments it empties the queue by itself,
 * before it overflows, unless it seems to share the path with Reno flows, which would take the room.
 *
 *   paper  the window to 2^-32 of a segment
 *   linux  whole segments
 */
#ifndef LFN_YEAH_H
#define LFN_YEAH_H

#include "delay.h"

#define YEAH_LINUX 1u
#define YEAH_Q_MAX_Q16 (80ULL << 16) /* segments in the queue that call for precaution (Linux) */
#define YEAH_PHY 8u                  /* slow above a queueing delay of base/8 (Linux) */
#define YEAH_RHO 16u                 /* slow round trips in a row after which a loss halves (Linux) */
#define YEAH_ZETA 50u                /* fast ones after which no Reno flow is believed there (Linux) */

struct yeah {
	struct delay delay;
	u64 queued_q16;   /* in the last round that had samples */
	u32 reno_count;   /* estimate of a competing Reno flow's window */
	u32 slow_rounds;  /* in a row; 0: fast mode */
	u32 fast_rounds;  /* since reno_count last restarted */
	u32 cnt;          /* linux: segments acknowledged towards the next one */
	u32 variant;
};

static inline void yeah_init(void *state, const struct law_config *config, struct law_control *control)
{
	struct yeah *s = state;

	(void)control;
	s->variant = config->variant;
	s->reno_count = 2;
}

static inline u64 yeah_whole(const struct yeah *s, u64 w)
{
	return s->variant == YEAH_LINUX ? w & ~(LAW_ONE - 1) : w;
}

/* Takes the queue out of the window w, but not below what a Reno flow would have. */
static inline void yeah_decongest(struct yeah *s, u64 w, struct law_control *control)
{
	u64 least = LAW_SEG(s->reno_count);
	u64 queued = yeah_whole(s, s->queued_q16 << 16);

	if (s->queued_q16 <= YEAH_Q_MAX_Q16 || w <= least)
		return;
	control->cwnd = law_max(w - law_min(queued, yeah_whole(s, w >> 1)), least);
	control->ssthresh = law_min(control->ssthresh, control->cwnd);
}

/* Once a round trip, with the window w. */
static inline void yeah_end_round(struct yeah *s, u64 w, struct law_control *control)
{
	u32 queueing_us = s->delay.round_us - s->delay.base_us;

	s->queued_q16 = delay_queue_q16(&s->delay, yeah_whole(s, w), s->delay.round_us);
	if (s->queued_q16 <= YEAH_Q_MAX_Q16 && queueing_us <= s->delay.base_us / YEAH_PHY) {
		s->slow_rounds = 0;
		if (++s->fast_rounds > YEAH_ZETA) {
			s->reno_count = 2;
			s->fast_rounds = 0;
		}
		return;
	}
	yeah_decongest(s, w, control);
	if (s->reno_count <= 2)
		s->reno_count = (u32)law_max(control->cwnd >> 33, 2);
	else if (s->reno_count < 1u << 26)
		s->reno_count++;
	if (s->slow_rounds < YEAH_RHO)
		s->slow_rounds++;
}

static inline void yeah_on_sample(void *state, const struct law_ack *ack, struct law_control *control)
{
	struct yeah *s = state;
	u64 w = control->cwnd;

	delay_on_sample(&s->delay, ack, s->variant == YEAH_LINUX);
	if (!(ack->flags & LAW_ACK_OPEN) || !s->delay.starts || w >= control->ssthresh || !s->delay.round_us)
		return;
	if (s->variant == YEAH_LINUX && ack->flags & LAW_ACK_CWND_LIMITED)
		w = law_min(w + LAW_SEG(ack->newly_delivered), control->ssthresh); /* slow start comes first */
	yeah_end_round(s, w, control);
	s->delay.starts = 0; /* the ACK ends one round, though it may also end slow start */
}

static inline void yeah_on_ack(void *state, u32 n, const struct law_ack *ack, struct law_control *control)
{
	struct yeah *s = state;
	u64 w = control->cwnd >> 32;

	if (s->variant == YEAH_LINUX)
		law_add_every(control, &s->cnt, (u32)(s->slow_rounds ? w : law_min(w, 100)), n);
	else if (s->slow_rounds)
		law_add_per_rtt(control, 1 << 16, n);
	else
		law_add_per_rtt(control, law_max(control->cwnd / 100 >> 16, 1 << 16), n);
	(void)ack;
	if (s->delay.starts && s->delay.round_us)
		yeah_end_round(s, control->cwnd, control);
}

static inline void yeah_on_loss(void *state, const struct law_loss *loss, struct law_control *control)
{
	struct yeah *s = state;
	u64 w = yeah_whole(s, control->cwnd), half = yeah_whole(s, w >> 1), cut = half;

	(void)loss;
	if (s->slow_rounds < YEAH_RHO)
		cut = law_max(law_min(yeah_whole(s, s->queued_q16 << 16), half), yeah_whole(s, w >> 3));
	control->ssthresh = law_max(w - cut, LAW_MIN_SSTHRESH);
	s->fast_rounds = 0;
	s->reno_count = (u32)law_max(s->reno_count >> 1, 2);
	s->cnt = 0;
}

static inline void yeah_probe(const void *state, const struct law_control *control, u64 *out)
{
	const struct yeah *s = state;

	(void)control;
	out[0] = s->queued_q16;
	out[1] = s->reno_count;
	out[2] = s->slow_rounds;
}

LAW_OPS(yeah, .on_sample = yeah_on_sample, .probe = yeah_probe);

#endif
