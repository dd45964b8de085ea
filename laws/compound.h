/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Compound TCP (Tan, Song, Zhang, Sridharan, INFOCOM 2006; draft-sridharan-tcpm-ctcp): the window is a
 * sum, Reno's and one that answers delay. The second grows as win^0.75/8 a round trip while fewer than
 * gamma = 30 segments queue, and gives way as soon as more do.
 */
#ifndef LFN_COMPOUND_H
#define LFN_COMPOUND_H

#include "delay.h"

#define COMPOUND_LOW_WINDOW LAW_SEG(41)    /* Reno below it (draft) */
#define COMPOUND_GAMMA_Q16 (30ULL << 16)

struct compound {
	struct delay delay;
	u64 dwnd; /* the part that answers delay, Q32 segments */
	u64 undo_dwnd;
};

static inline void compound_init(void *state, const struct law_config *config, struct law_control *control)
{
	(void)state;
	(void)config;
	(void)control;
}

static inline void compound_on_sample(void *state, const struct law_ack *ack, struct law_control *control)
{
	struct compound *s = state;

	(void)control;
	delay_on_sample(&s->delay, ack, 0);
}

/* The square root of x < 2^62, rounded down. */
static inline u64 compound_root(u64 x)
{
	u64 root = 0, step;

	for (step = 1ULL << 30; step; step >>= 1) {
		u64 next = root + step;

		root += step & law_mask_le(next * next, x);
	}
	return root;
}

/* max(w^0.75/8 - 1, 0) for a Q32 window: w^(1/2) and w^(1/4) are Q16. */
static inline u64 compound_gain(u64 w)
{
	u64 half = compound_root(w), quarter = compound_root(half << 16);
	u64 gain = half * quarter / 8;

	return gain > LAW_ONE ? gain - LAW_ONE : 0;
}

/* Once a round trip. */
static inline void compound_end_round(struct compound *s, struct law_control *control)
{
	u64 w = control->cwnd, queued_q16 = delay_queue_q16(&s->delay, w, s->delay.round_us);
	u64 dwnd = law_min(s->dwnd, w - LAW_ONE), reno = w - dwnd;

	if (queued_q16 < COMPOUND_GAMMA_Q16) {
		if (w >= COMPOUND_LOW_WINDOW)
			dwnd += compound_gain(w);
	} else {
		dwnd -= law_min(dwnd, queued_q16 << 16); /* zeta = 1 */
	}
	s->dwnd = law_min(dwnd, LAW_MAX_CWND - reno);
	control->cwnd = reno + s->dwnd;
	control->ssthresh = law_min(control->ssthresh, law_max(control->cwnd, LAW_MIN_SSTHRESH));
}

static inline void compound_on_ack(void *state, u32 n, const struct law_ack *ack, struct law_control *control)
{
	struct compound *s = state;

	law_add_per_rtt(control, 1 << 16, n);
	if ((ack->flags & LAW_ACK_ROUND_START) && s->delay.round_us)
		compound_end_round(s, control);
}

/* Both parts halve; a timeout leaves Reno's alone. */
static inline void compound_on_loss(void *state, const struct law_loss *loss, struct law_control *control)
{
	struct compound *s = state;

	s->undo_dwnd = s->dwnd;
	s->dwnd = loss->kind == LAW_LOSS_RTO ? 0 : s->dwnd / 2;
	control->ssthresh = law_max(control->cwnd / 2, LAW_MIN_SSTHRESH);
}

static inline void compound_on_undo(void *state, struct law_control *control)
{
	struct compound *s = state;

	(void)control;
	s->dwnd = s->undo_dwnd;
}

static inline void compound_probe(const void *state, const struct law_control *control, u64 *out)
{
	const struct compound *s = state;

	(void)control;
	out[0] = s->dwnd;
	out[1] = s->delay.base_us;
	out[2] = s->delay.round_us;
}

LAW_OPS(compound, .on_sample = compound_on_sample, .on_undo = compound_on_undo, .probe = compound_probe);

#endif
