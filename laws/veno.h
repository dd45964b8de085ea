/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* TCP Veno (Fu & Liew, JSAC 21(2), 2003): Reno that asks Vegas's question. With few of its segments
 * in the queue a loss was no sign of congestion, and costs a fifth; with many it grows half as fast.
 *
 *   paper  the window to 2^-32 of a segment
 *   linux  whole segments, and the queue as each ACK finds it; Reno in state Disorder
 *          (measured on Linux 6.12)
 */
#ifndef LFN_VENO_H
#define LFN_VENO_H

#include "delay.h"

#define VENO_LINUX 1u
#define VENO_BETA_Q16 (3ULL << 16) /* queued segments from which the path counts as congested */
#define VENO_LINUX_STEP_Q16 (1ULL << 15) /* the queue is rounded up to half segments */

struct veno {
	struct delay delay;
	u64 queued_q16; /* N: segments in the queue in the last round that had samples */
	u32 variant;
	u32 cnt;  /* linux: segments acknowledged towards the next one */
	u32 half; /* linux: one of the two windows that it takes is counted; the first takes one */
	u32 min_us; /* linux: smallest RTT since the queue was last computed; 0: none */
};

static inline void veno_init(void *state, const struct law_config *config, struct law_control *control)
{
	struct veno *s = state;

	(void)control;
	s->variant = config->variant;
	s->half = 1;
}

/* The queue that the ACKs found since a segment was last acknowledged in state Open: an ACK with SACK blocks, which
 * begins an episode, leaves it alone. */
static inline void veno_linux_on_sample(struct veno *s, const struct law_ack *ack, u64 cwnd)
{
	u32 rtt_us = (u32)law_clamp(ack->rtt_ns / 1000, 1, ~0U >> 1);

	if ((ack->flags & (LAW_ACK_OPEN | LAW_ACK_DISORDER)) != LAW_ACK_OPEN) {
		s->min_us = 0;
		return;
	}
	if (ack->rtt_ns && (!s->min_us || rtt_us < s->min_us))
		s->min_us = rtt_us;
	if (!ack->acked || !s->min_us || ack->flags & LAW_ACK_SACK)
		return;
	s->delay.round_us = s->min_us;
	s->queued_q16 = (delay_queue_q16(&s->delay, cwnd, s->min_us) + VENO_LINUX_STEP_Q16 - 1) & ~(VENO_LINUX_STEP_Q16 - 1);
	s->min_us = 0;
}

static inline void veno_on_sample(void *state, const struct law_ack *ack, struct law_control *control)
{
	struct veno *s = state;

	if (s->variant == VENO_LINUX && ack->flags & LAW_ACK_RESTART)
		s->delay.base_us = 0;
	delay_on_sample(&s->delay, ack, 0);
	if (s->variant == VENO_LINUX) {
		veno_linux_on_sample(s, ack, control->cwnd);
	} else if ((ack->flags & LAW_ACK_ROUND_START) && s->delay.round_us) {
		s->queued_q16 = delay_queue_q16(&s->delay, control->cwnd, s->delay.round_us);
	}
}

/* With a queue the ACK that finds a window counted is not counted itself, nor what was over it. */
static inline void veno_linux_on_ack(struct veno *s, u32 n, const struct law_ack *ack, struct law_control *control)
{
	u32 w = (u32)(control->cwnd >> 32);

	if (s->queued_q16 < VENO_BETA_Q16 || ack->flags & LAW_ACK_SACK) {
		law_add_every(control, &s->cnt, w, n);
	} else if (s->cnt < w) {
		s->cnt += n;
	} else {
		s->cnt = 0;
		control->cwnd = law_min(control->cwnd + LAW_SEG(s->half), LAW_MAX_CWND);
		s->half ^= 1;
	}
}

static inline void veno_on_ack(void *state, u32 n, const struct law_ack *ack, struct law_control *control)
{
	struct veno *s = state;

	if (s->variant == VENO_LINUX)
		veno_linux_on_ack(s, n, ack, control);
	else
		law_add_per_rtt(control, (1 << 16) >> (s->queued_q16 >= VENO_BETA_Q16), n);
}

static inline void veno_on_loss(void *state, const struct law_loss *loss, struct law_control *control)
{
	struct veno *s = state;
	u64 w = control->cwnd;

	(void)loss;
	if (s->variant == VENO_LINUX)
		w &= ~(LAW_ONE - 1);
	w = s->queued_q16 < VENO_BETA_Q16 ? w / 5 * 4 : w / 2;
	if (s->variant == VENO_LINUX)
		w &= ~(LAW_ONE - 1);
	control->ssthresh = law_max(w, LAW_MIN_SSTHRESH);
	s->cnt = 0;
}

static inline void veno_probe(const void *state, const struct law_control *control, u64 *out)
{
	const struct veno *s = state;

	(void)control;
	out[0] = s->queued_q16;
	out[1] = s->delay.base_us;
	out[2] = s->delay.round_us;
}

LAW_OPS(veno, .on_sample = veno_on_sample, .probe = veno_probe);

#endif
