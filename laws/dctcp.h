/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* DCTCP (Alizadeh et al., SIGCOMM 2010; RFC 8257): a mark says how much congestion there is, not only
 * that there is some. alpha follows the fraction of segments marked, once a window of data, and a
 * window with marks is cut by alpha/2. Losses halve.
 *
 * `rfc` computes in fractions; `linux` in whole segments and in 1024ths of alpha. There a window of data ends when
 * all that was sent before it began is acknowledged, so one ACK before a round trip does (measured).
 */
#ifndef LFN_DCTCP_H
#define LFN_DCTCP_H

#include "law.h"

#define DCTCP_G_SHIFT 4u /* g = 1/16 (RFC 8257 section 3.3) */
#define DCTCP_ONE_Q20 (1u << 20)
#define DCTCP_RFC 0u
#define DCTCP_LINUX 1u
#define DCTCP_Q20_OF_Q10 10u /* Linux counts in 1/1024 */

struct dctcp {
	u32 variant;
	u32 alpha_q20;
	u32 delivered; /* in the window of data under way */
	u32 marked;    /* of them, those whose ACK echoed a mark */
	u32 cnt;       /* segments acknowledged towards the next one (linux) */
	u64 mark_ns;   /* linux: time of the last reduction for marks */
	u32 answers_mark; /* the reduction under way is for marks: a loss reduces again (RFC 8257 section 3.5) */
};

static inline void dctcp_init(void *state, const struct law_config *config, struct law_control *control)
{
	struct dctcp *s = state;

	(void)control;
	s->variant = config->variant;
	s->alpha_q20 = DCTCP_ONE_Q20; /* cautious until something is known: section 3.3 */
}

/* alpha and the marked fraction of the window that has ended, in the integers of Linux: alpha loses a sixteenth; where
 * that is less than 1/1024, all of it. */
static inline u32 dctcp_linux_alpha_q20(const struct dctcp *s)
{
	u32 alpha = s->alpha_q20 >> DCTCP_Q20_OF_Q10;
	u32 gain = s->marked ? (u32)(((u64)s->marked << (10u - DCTCP_G_SHIFT)) / law_max(s->delivered, 1)) : 0;

	alpha -= alpha >> DCTCP_G_SHIFT ? alpha >> DCTCP_G_SHIFT : alpha;
	return (u32)law_min(alpha + gain, 1024) << DCTCP_Q20_OF_Q10;
}

/* The window after a reduction for marks. */
static inline u64 dctcp_linux_cut(const struct dctcp *s, const struct law_control *control)
{
	u32 whole = (u32)(control->cwnd >> 32);

	return LAW_SEG(whole - (u32)(((u64)whole * (s->alpha_q20 >> DCTCP_Q20_OF_Q10)) >> 11));
}

static inline void dctcp_count(struct dctcp *s, const struct law_ack *ack)
{
	s->delivered = (u32)law_min((u64)s->delivered + ack->newly_delivered, ~0U);
	if (ack->ce)
		s->marked = (u32)law_min((u64)s->marked + ack->newly_delivered, ~0U);
}

static inline void dctcp_halve(struct dctcp *s, struct law_control *control)
{
	u64 w = control->cwnd >> 1;

	control->ssthresh = law_max(s->variant == DCTCP_LINUX ? w & ~(LAW_ONE - 1) : w, LAW_MIN_SSTHRESH);
	s->answers_mark = 0;
}

static inline void dctcp_on_sample(void *state, const struct law_ack *ack, struct law_control *control)
{
	struct dctcp *s = state;

	if (s->answers_mark && ack->newly_lost)
		dctcp_halve(s, control);
	dctcp_count(s, ack);
	if (ack->flags & (s->variant == DCTCP_LINUX ? LAW_ACK_FLIGHT : LAW_ACK_ROUND_START)) {
		if (s->variant == DCTCP_LINUX) {
			s->alpha_q20 = dctcp_linux_alpha_q20(s);
			/* This ACK brought the mark too: Linux takes the sample first, the simulator the mark. */
			if (s->answers_mark && s->mark_ns == ack->now_ns)
				control->ssthresh = law_max(dctcp_linux_cut(s, control), LAW_MIN_SSTHRESH);
		} else if (s->delivered) {
			u32 f_q20 = (u32)(((u64)s->marked << 20) / s->delivered);

			s->alpha_q20 =
				(u32)(((((u64)s->alpha_q20 << DCTCP_G_SHIFT) - s->alpha_q20) + f_q20) >> DCTCP_G_SHIFT);
		}
		s->delivered = 0;
		s->marked = 0;
	}
}

static inline void dctcp_on_ack(void *state, u32 n, const struct law_ack *ack, struct law_control *control)
{
	struct dctcp *s = state;

	(void)ack;
	if (s->variant == DCTCP_LINUX)
		law_add_every(control, &s->cnt, (u32)(control->cwnd >> 32), n);
	else
		law_add_per_rtt(control, 1 << 16, n);
}

static inline void dctcp_on_loss(void *state, const struct law_loss *loss, struct law_control *control)
{
	struct dctcp *s = state;
	u64 w = control->cwnd;

	s->cnt = 0;
	if (loss->kind != LAW_LOSS_ECN) {
		dctcp_halve(s, control);
		return;
	}
	w -= (w >> 21) * s->alpha_q20;
	if (s->variant == DCTCP_LINUX)
		w = dctcp_linux_cut(s, control);
	s->mark_ns = loss->now_ns;
	control->ssthresh = law_max(w, LAW_MIN_SSTHRESH);
	s->answers_mark = 1;
}

static inline void dctcp_on_open(void *state, const struct law_ack *ack, struct law_control *control)
{
	struct dctcp *s = state;

	(void)ack;
	(void)control;
	s->answers_mark = 0;
}

static inline void dctcp_probe(const void *state, const struct law_control *control, u64 *out)
{
	const struct dctcp *s = state;

	(void)control;
	out[0] = s->alpha_q20;
}

LAW_OPS(dctcp, .on_sample = dctcp_on_sample, .on_open = dctcp_on_open, .probe = dctcp_probe);

#endif
