/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Copa (Arun & Balakrishnan, NSDI 2018): the rate moves towards 1/(delta dq) segments/s, where dq is the
 * queueing delay, by a velocity that doubles while the direction stays. One flow keeps 1/delta = 2
 * segments in the queue on average and empties it every few round trips; where the queue does not empty
 * for five of them, someone else fills it, and 1/delta grows and shrinks as Reno's window does.
 */
#ifndef LFN_COPA_H
#define LFN_COPA_H

#include "law.h"

#define COPA_INV_DELTA 2u          /* 1/delta alone */
#define COPA_INV_DELTA_MAX (1u << 16)
#define COPA_STEADY 3u             /* round trips in one direction before the velocity doubles */
#define COPA_FULL_ROUNDS 5u        /* without an empty queue: competitive */
#define COPA_MIN_WINDOW_NS 10000000000ULL /* RTT_min is that of the last 10 s */

/* A minimum over a sliding window, in halves: of the last half to the last whole of it. */
struct copa_min {
	u64 half_ns; /* start of the half under way */
	u32 now_us;  /* smallest in it; 0: no sample */
	u32 old_us;  /* smallest in the half before */
};

struct copa {
	struct copa_min standing; /* over srtt/2: the queue without the jitter of ACKs */
	struct copa_min base;     /* over 10 s */
	u64 w_round;     /* window when the round trip began */
	u32 max_us[2];   /* largest RTT of the last two round trips, and of the two before */
	u32 velocity;
	u32 inv_delta;
	u8 up;           /* direction of the last round trip */
	u8 steady;       /* round trips in that direction */
	u8 full_rounds;  /* round trips since the queue was nearly empty */
	u8 rounds;       /* in max_us[0] */
};

static inline void copa_init(void *state, const struct law_config *config, struct law_control *control)
{
	struct copa *s = state;

	(void)control;
	s->standing.half_ns = config->now_ns;
	s->base.half_ns = config->now_ns;
	s->velocity = 1;
	s->inv_delta = COPA_INV_DELTA;
}

static inline u32 copa_min_of(const struct copa_min *m)
{
	return m->old_us && m->old_us < m->now_us ? m->old_us : m->now_us;
}

static inline void copa_min_add(struct copa_min *m, u64 now_ns, u64 window_ns, u32 rtt_us)
{
	if (now_ns - m->half_ns > window_ns / 2) {
		m->old_us = now_ns - m->half_ns > window_ns ? 0 : m->now_us;
		m->now_us = 0;
		m->half_ns = now_ns;
	}
	if (!m->now_us || rtt_us < m->now_us)
		m->now_us = rtt_us;
}

static inline u32 copa_queueing_us(const struct copa *s)
{
	u32 standing_us = copa_min_of(&s->standing), base_us = copa_min_of(&s->base);

	return standing_us > base_us ? standing_us - base_us : 0;
}

/* RTT_standing/(delta dq), Q16 segments. */
static inline u64 copa_target_q16(const struct copa *s)
{
	u32 dq_us = copa_queueing_us(s);

	return dq_us ? law_muldiv(copa_min_of(&s->standing), (u64)s->inv_delta << 16, dq_us) : ~0ULL;
}

/* Nearly empty: within a tenth of the way from RTT_min to the largest of four round trips. */
static inline void copa_watch_queue(struct copa *s, u32 rtt_us)
{
	u32 base_us = copa_min_of(&s->base), most_us;

	s->max_us[0] = (u32)law_max(s->max_us[0], rtt_us);
	most_us = (u32)law_max(s->max_us[0], s->max_us[1]);
	if (10ULL * (rtt_us - base_us) <= most_us - base_us)
		s->full_rounds = 0;
}

/* Once a round trip: mode, then velocity. */
static inline void copa_end_round(struct copa *s, u64 w)
{
	u8 up = w > s->w_round;

	if (++s->rounds == 2) {
		s->max_us[1] = s->max_us[0];
		s->max_us[0] = 0;
		s->rounds = 0;
	}
	if (s->full_rounds < COPA_FULL_ROUNDS)
		s->full_rounds++;
	if (s->full_rounds < COPA_FULL_ROUNDS)
		s->inv_delta = COPA_INV_DELTA;
	else if (s->inv_delta < COPA_INV_DELTA_MAX)
		s->inv_delta++;
	if (up != s->up) {
		s->velocity = 1;
		s->steady = 0;
	} else if (++s->steady >= COPA_STEADY) {
		s->steady = COPA_STEADY;
		s->velocity = (u32)law_clamp(2ULL * s->velocity, 1, law_max((w >> 32) / s->inv_delta, 1));
	}
	s->up = up;
	s->w_round = w;
}

static inline void copa_pace(const struct copa *s, const struct law_ack *ack, struct law_control *control)
{
	u64 rate = law_muldiv(control->cwnd >> 16, 2000000, copa_min_of(&s->standing)) >> 16;

	control->pacing_Bps = law_max(rate, 1) * ack->mss_B;
}

static inline void copa_on_sample(void *state, const struct law_ack *ack, struct law_control *control)
{
	struct copa *s = state;

	if (ack->rtt_ns) {
		u32 rtt_us = (u32)law_clamp(ack->rtt_ns / 1000, 1, ~0U >> 1);

		copa_min_add(&s->standing, ack->now_ns, ack->srtt_ns / 2, rtt_us);
		copa_min_add(&s->base, ack->now_ns, COPA_MIN_WINDOW_NS, rtt_us);
		copa_watch_queue(s, rtt_us);
	}
	if (!(ack->flags & LAW_ACK_OPEN) || !copa_min_of(&s->standing))
		return;
	copa_pace(s, ack, control);
	if (control->cwnd >= control->ssthresh)
		return;
	if (control->cwnd >> 16 >= copa_target_q16(s))
		control->ssthresh = law_max(control->cwnd, LAW_MIN_SSTHRESH);
	s->w_round = control->cwnd;
	s->full_rounds = 0;
}

static inline void copa_on_ack(void *state, u32 n, const struct law_ack *ack, struct law_control *control)
{
	struct copa *s = state;
	u64 gain_q16 = law_min((u64)s->velocity * s->inv_delta, 65535) << 16;
	u64 w = control->cwnd, step = law_min((gain_q16 << 32) / law_max(w >> 16, 1), LAW_ONE) * n;

	if (w >> 16 < copa_target_q16(s))
		control->cwnd = law_min(w + step, LAW_MAX_CWND);
	else
		control->cwnd = law_max(w - law_min(step, w), LAW_MIN_SSTHRESH);
	control->ssthresh = law_min(control->ssthresh, law_max(control->cwnd, LAW_MIN_SSTHRESH));
	if (ack->flags & LAW_ACK_ROUND_START)
		copa_end_round(s, control->cwnd);
}

/* Losses are not its signal; beside others they halve what it claims. */
static inline void copa_on_loss(void *state, const struct law_loss *loss, struct law_control *control)
{
	struct copa *s = state;
	int halve = loss->kind == LAW_LOSS_RTO || control->cwnd < control->ssthresh;

	s->inv_delta = (u32)law_max(s->inv_delta / 2, COPA_INV_DELTA);
	s->velocity = 1;
	s->steady = 0;
	control->ssthresh = law_max(control->cwnd >> halve, LAW_MIN_SSTHRESH);
}

static inline void copa_probe(const void *state, const struct law_control *control, u64 *out)
{
	const struct copa *s = state;

	(void)control;
	out[0] = copa_queueing_us(s);
	out[1] = s->velocity;
	out[2] = s->inv_delta;
	out[3] = copa_min_of(&s->base);
}

LAW_OPS(copa, .on_sample = copa_on_sample, .probe = copa_probe);

#endif
