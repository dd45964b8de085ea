/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* TCP Vegas (Brakmo, O'Malley, Peterson, SIGCOMM 1994; Brakmo & Peterson, JSAC 13(8), 1995). Once a
 * round trip it compares the window with what an empty path would need, and moves by one segment to
 * keep between alpha and beta segments in the queue.
 *
 *   paper  queued segments = w (1 - base/RTT), the window to 2^-32
 *   linux  w (RTT - base)/base, whole segments; Reno in state Disorder (measured)
 */
#ifndef LFN_VEGAS_H
#define LFN_VEGAS_H

#include "delay.h"

#define VEGAS_PAPER 0u
#define VEGAS_LINUX 1u
#define VEGAS_ALPHA_Q16 (2ULL << 16) /* grows below (Linux; "Vegas-2,4" of 1995) */
#define VEGAS_BETA_Q16 (4ULL << 16)  /* shrinks above */
#define VEGAS_GAMMA_Q16 (1ULL << 16) /* leaves slow start above */

struct vegas {
	struct delay delay;
	u32 cnt; /* linux: segments acknowledged towards the next one, as Reno */
	u16 variant;
	u16 left_slow_start; /* by this ACK, which then moves the window no further */
};

static inline void vegas_init(void *state, const struct law_config *config, struct law_control *control)
{
	struct vegas *s = state;

	(void)control;
	s->variant = (u16)config->variant;
}

/* Queued segments in the last round, Q16. */
static inline u64 vegas_diff_q16(const struct vegas *s, u64 w)
{
	u64 diff;

	if (s->variant != VEGAS_LINUX)
		return delay_queue_q16(&s->delay, w, s->delay.round_us);
	diff = delay_queue_q16(&s->delay, w & ~(LAW_ONE - 1), s->delay.base_us);
	return diff & ~0xffffULL;
}

/* Slow start ends with more than gamma segments in the queue, at the window that fills the path. */
static inline void vegas_on_sample(void *state, const struct law_ack *ack, struct law_control *control)
{
	struct vegas *s = state;
	u64 w = control->cwnd, full;

	delay_on_sample(&s->delay, ack, s->variant == VEGAS_LINUX);
	s->left_slow_start = 0;
	if (!(ack->flags & LAW_ACK_OPEN) || !s->delay.starts || w >= control->ssthresh)
		return;
	if (vegas_diff_q16(s, w) <= VEGAS_GAMMA_Q16)
		return;
	full = law_muldiv(w >> 16, s->delay.base_us, s->delay.round_us) << 16; /* Q16 to Q32 */
	if (s->variant == VEGAS_LINUX)
		full &= ~(LAW_ONE - 1);
	control->cwnd = law_max(law_min(w, full + LAW_ONE), LAW_MIN_SSTHRESH);
	control->ssthresh = control->cwnd;
	s->left_slow_start = 1;
}

static inline void vegas_on_ack(void *state, u32 n, const struct law_ack *ack, struct law_control *control)
{
	struct vegas *s = state;
	u64 diff;

	if (s->variant == VEGAS_LINUX && ack->flags & LAW_ACK_SACK) {
		law_add_every(control, &s->cnt, (u32)(control->cwnd >> 32), n);
		return;
	}
	if (!s->delay.starts || s->left_slow_start)
		return;
	if (!s->delay.round_us) {
		/* Too few samples to tell: Reno, for this ACK. */
		if (s->variant == VEGAS_LINUX)
			law_add_every(control, &s->cnt, (u32)(control->cwnd >> 32), n);
		else
			law_add_per_rtt(control, 1 << 16, n);
		return;
	}
	diff = vegas_diff_q16(s, control->cwnd);
	if (diff < VEGAS_ALPHA_Q16) {
		control->cwnd = law_min(control->cwnd + LAW_ONE, LAW_MAX_CWND);
	} else if (diff > VEGAS_BETA_Q16 && control->cwnd >= LAW_SEG(3)) {
		control->cwnd -= LAW_ONE;
		/* Below ssthresh it would be slow start. */
		control->ssthresh = law_min(control->ssthresh, control->cwnd);
	}
}

static inline void vegas_on_loss(void *state, const struct law_loss *loss, struct law_control *control)
{
	struct vegas *s = state;
	u64 half = control->cwnd >> 1;

	(void)loss;
	if (s->variant == VEGAS_LINUX)
		half &= ~(LAW_ONE - 1);
	control->ssthresh = law_max(half, LAW_MIN_SSTHRESH);
	s->cnt = 0;
}

static inline void vegas_probe(const void *state, const struct law_control *control, u64 *out)
{
	const struct vegas *s = state;

	out[0] = s->delay.round_us ? vegas_diff_q16(s, control->cwnd) : 0;
	out[1] = s->delay.base_us;
	out[2] = s->delay.round_us;
}

LAW_OPS(vegas, .on_sample = vegas_on_sample, .probe = vegas_probe);

#endif
