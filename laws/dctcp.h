/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* DCTCP (Alizadeh et al., SIGCOMM 2010; RFC 8257): a mark says how much congestion there is, not only
 * that there is some. alpha follows the fraction of segments marked, once a window of data, and a
 * window with marks is cut by alpha/2. Losses halve.
 */
#ifndef LFN_DCTCP_H
#define LFN_DCTCP_H

#include "law.h"

#define DCTCP_G_SHIFT 4u /* g = 1/16 (RFC 8257 section 3.3) */
#define DCTCP_ONE_Q20 (1u << 20)

struct dctcp {
	u32 alpha_q20;
	u32 delivered; /* in the window of data under way */
	u32 marked;    /* of them, those whose ACK echoed a mark */
};

static inline void dctcp_init(void *state, const struct law_config *config, struct law_control *control)
{
	struct dctcp *s = state;

	(void)config;
	(void)control;
	s->alpha_q20 = DCTCP_ONE_Q20; /* cautious until something is known: section 3.3 */
}

static inline void dctcp_on_sample(void *state, const struct law_ack *ack, struct law_control *control)
{
	struct dctcp *s = state;

	(void)control;
	s->delivered = (u32)law_min((u64)s->delivered + ack->newly_delivered, ~0U);
	if (ack->ce)
		s->marked = (u32)law_min((u64)s->marked + ack->newly_delivered, ~0U);
	if ((ack->flags & LAW_ACK_ROUND_START) && s->delivered) {
		u32 f_q20 = (u32)(((u64)s->marked << 20) / s->delivered);

		s->alpha_q20 = (u32)(((((u64)s->alpha_q20 << DCTCP_G_SHIFT) - s->alpha_q20) + f_q20) >> DCTCP_G_SHIFT);
		s->delivered = 0;
		s->marked = 0;
	}
}

static inline void dctcp_on_ack(void *state, u32 n, const struct law_ack *ack, struct law_control *control)
{
	(void)state;
	(void)ack;
	law_add_per_rtt(control, 1 << 16, n);
}

static inline void dctcp_on_loss(void *state, const struct law_loss *loss, struct law_control *control)
{
	struct dctcp *s = state;
	u64 w = control->cwnd;

	w -= loss->kind == LAW_LOSS_ECN ? (w >> 21) * s->alpha_q20 : w >> 1;
	control->ssthresh = law_max(w, LAW_MIN_SSTHRESH);
}

static inline void dctcp_probe(const void *state, const struct law_control *control, u64 *out)
{
	const struct dctcp *s = state;

	(void)control;
	out[0] = s->alpha_q20;
}

LAW_OPS(dctcp, .on_sample = dctcp_on_sample, .probe = dctcp_probe);

#endif
