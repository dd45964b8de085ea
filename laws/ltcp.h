/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* LTCP, layered TCP (Bhandarkar, Jain, Reddy, PFLDnet 2005; PE-WASUN of the same): a window in layer K
 * grows as K Reno flows, by K segments a round trip. Layers lie ever farther apart,
 *
 *     W_1 = 0, W_K = W_T (K + 1) K (K - 1)/6, W_T = 50
 *
 * so that of two flows the larger takes longer to regain what a loss took, and they converge. A loss
 * takes 0.15 of the window and at most one layer.
 *
 *   paper   K segments a round trip
 *   rtt3    times (RTT/0.1 s)^(1/3), which makes it as fair to long RTTs as Reno
 *   rtt     times RTT/0.1 s
 */
#ifndef LFN_LTCP_H
#define LFN_LTCP_H

#include "law.h"

#define LTCP_PAPER 0u
#define LTCP_RTT3 1u
#define LTCP_WT 50ULL        /* segments; below it Reno, its loss too */
#define LTCP_K_MAX 200u      /* W_200 is 67 million segments */
#define LTCP_B_PERCENT 15u
#define LTCP_RTT_REF_US 100000ULL

struct ltcp {
	u32 k;          /* layer, from 1 */
	u32 factor_q10; /* K_R, for the RTT */
	u32 factor_us;  /* the smoothed RTT that it holds for */
	u32 variant;
};

/* W_K in segments; W_1 = 0. */
static inline u64 ltcp_layer(u32 k)
{
	return LTCP_WT * (k + 1) * k * (k - 1) / 6;
}

/* The largest K with W_K <= w. */
static inline u32 ltcp_find(u64 w)
{
	u32 k = 1, step;

	for (step = 128; step; step >>= 1) {
		u32 next = (u32)law_min(k + step, LTCP_K_MAX);

		k += (next - k) & (u32)law_mask_le(ltcp_layer(next), w >> 32);
	}
	return k;
}

static inline void ltcp_init(void *state, const struct law_config *config, struct law_control *control)
{
	struct ltcp *s = state;

	s->variant = config->variant;
	s->factor_q10 = 1024;
	s->k = ltcp_find(control->cwnd);
}

/* The cube root of a Q30 below 2^45, Q10. */
static inline u64 ltcp_cube_root(u64 x)
{
	u64 root = 0, step;

	for (step = 1 << 14; step; step >>= 1) {
		u64 next = root + step;

		root += step & law_mask_le(next * next * next, x);
	}
	return root;
}

/* K_R, updated when the smoothed RTT moved by a 64th; within [1/32, 32] of the reference. */
static inline void ltcp_set_factor(struct ltcp *s, u64 srtt_ns)
{
	u32 rtt_us = (u32)law_clamp(srtt_ns / 1000, LTCP_RTT_REF_US / 32, LTCP_RTT_REF_US * 32);
	u32 moved = rtt_us > s->factor_us ? rtt_us - s->factor_us : s->factor_us - rtt_us;

	if (s->variant == LTCP_PAPER || !srtt_ns || moved < s->factor_us / 64)
		return;
	s->factor_us = rtt_us;
	if (s->variant == LTCP_RTT3)
		s->factor_q10 = (u32)ltcp_cube_root(((u64)rtt_us << 30) / LTCP_RTT_REF_US);
	else
		s->factor_q10 = (u32)(((u64)rtt_us << 10) / LTCP_RTT_REF_US);
}

static inline void ltcp_on_ack(void *state, u32 n, const struct law_ack *ack, struct law_control *control)
{
	struct ltcp *s = state;

	ltcp_set_factor(s, ack->srtt_ns);
	if (control->cwnd >> 32 >= ltcp_layer(s->k + 1) && s->k < LTCP_K_MAX)
		s->k = ltcp_find(control->cwnd);
	law_add_per_rtt(control, (u64)s->k * s->factor_q10 << 6, n);
}

static inline void ltcp_on_loss(void *state, const struct law_loss *loss, struct law_control *control)
{
	struct ltcp *s = state;
	u64 w = control->cwnd;

	w -= s->k == 1 ? w >> 1 : w / 100 * LTCP_B_PERCENT;
	s->k = loss->kind == LAW_LOSS_RTO ? 1 : (u32)law_max(ltcp_find(w), law_max(s->k, 2) - 1);
	control->ssthresh = law_max(w, LAW_MIN_SSTHRESH);
}

static inline void ltcp_on_undo(void *state, struct law_control *control)
{
	struct ltcp *s = state;

	s->k = ltcp_find(control->cwnd);
}

static inline void ltcp_probe(const void *state, const struct law_control *control, u64 *out)
{
	const struct ltcp *s = state;

	(void)control;
	out[0] = s->k;
	out[1] = s->factor_q10;
}

LAW_OPS(ltcp, .on_undo = ltcp_on_undo, .probe = ltcp_probe);

#endif
