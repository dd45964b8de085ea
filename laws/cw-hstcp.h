/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* CW-HSTCP (Pan, Su, Lue, Ping, J. Zhejiang Univ. Sci. A 7(2), 2006): HSTCP whose increase is multiplied by
 * the fair factor eta = c RTT, so that flows of all RTTs, losing together, have the same window; and block
 * pacing, so that what eta adds on a long path leaves in blocks: k = floor(c RTT) + 1 of them a round trip.
 *
 *   c         of the fair factor, 1/s; the paper has 10, and 5 and 20 in its table 3
 *
 *   paper     a(w), b(w) as ns-2 computes them (hstcp:ns2, without its halving)
 *   floor     eta is at least 1: never slower than HSTCP
 *   above     eta only above 38 segments: below, Reno
 *   literal   blocks as the paper's listing has them: two segments more, also for k = 1, also in recovery
 *   unpaced   no blocks
 */
#ifndef LFN_CW_HSTCP_H
#define LFN_CW_HSTCP_H

#include "hstcp.h"

#define CW_HSTCP_FLOOR 1u
#define CW_HSTCP_ABOVE 2u
#define CW_HSTCP_LITERAL 3u
#define CW_HSTCP_UNPACED 4u
#define CW_HSTCP_ETA_ONE (1u << 20)
#define CW_HSTCP_RTT_MAX_US 100000000u
#define CW_HSTCP_C_RTT_MAX_US 2000000000u /* keeps eta at 2^31 or below */

struct cw_hstcp {
	u64 at;  /* window for which inc holds */
	u64 inc; /* a(w)/w, Q32 */
	u64 eta; /* c RTT, Q20 */
	u64 c;   /* 1/s, Q20 */
	u32 variant;
};

static inline void cw_hstcp_init(void *state, const struct law_config *config, struct law_control *control)
{
	struct cw_hstcp *s = state;

	(void)control;
	s->variant = config->variant;
	s->c = config->parameters[0];
}

/* Fig. 4: k blocks, "k = (int)c*RTT + 1; block = cwnd/k". The sender obeys. */
static inline void cw_hstcp_set_blocks(const struct cw_hstcp *s, u64 c_rtt, struct law_control *control)
{
	u32 w = (u32)(control->cwnd >> 32), k = (u32)law_min(c_rtt + 1, w);

	if (s->variant == CW_HSTCP_LITERAL)
		control->block = w / k + 2; /* "number > block" lets one more pass, and the delayed one is not counted */
	else if (k > 1 && s->variant != CW_HSTCP_UNPACED)
		control->block = (w + k - 1) / k;
	else
		control->block = 0;
	control->blocks = k;
}

static inline void cw_hstcp_on_ack(void *state, u32 n, const struct law_ack *ack, struct law_control *control)
{
	struct cw_hstcp *s = state;
	u64 rtt_us = law_min(ack->srtt_ns / 1000, CW_HSTCP_RTT_MAX_US);
	u64 c_rtt_us = law_min(rtt_us * s->c / LAW_PARAMETER_ONE, CW_HSTCP_C_RTT_MAX_US), eta;

	eta = s->eta = (c_rtt_us << 20) / 1000000;
	if (control->cwnd - s->at > s->at >> 12) {
		s->at = control->cwnd;
		s->inc = hstcp_inc(HSTCP_NS2, s->at);
	}
	if (s->variant == CW_HSTCP_FLOOR)
		eta = law_max(eta, CW_HSTCP_ETA_ONE);
	else if (s->variant == CW_HSTCP_ABOVE && control->cwnd <= HSTCP_LOW_WINDOW)
		eta = CW_HSTCP_ETA_ONE;
	control->cwnd = law_min(control->cwnd + law_min(eta * s->inc >> 20, LAW_ONE) * n, LAW_MAX_CWND);
	cw_hstcp_set_blocks(s, c_rtt_us / 1000000, control);
}

static inline void cw_hstcp_on_loss(void *state, const struct law_loss *loss, struct law_control *control)
{
	struct cw_hstcp *s = state;
	u64 cut = (control->cwnd >> 18) * hstcp_b(control->cwnd) >> 6;

	control->ssthresh = law_max(control->cwnd - cut, LAW_MIN_SSTHRESH);
	if (s->variant != CW_HSTCP_LITERAL || loss->kind == LAW_LOSS_RTO)
		control->block = 0; /* until congestion avoidance goes on */
}

/* eta; a and b of HSTCP at the present window; what the sender was asked for. */
static inline void cw_hstcp_probe(const void *state, const struct law_control *control, u64 *out)
{
	const struct cw_hstcp *s = state;

	out[0] = s->eta;
	out[1] = hstcp_inc(HSTCP_NS2, control->cwnd) * (control->cwnd >> 16) >> 32;
	out[2] = hstcp_b(control->cwnd) >> 8;
	out[3] = control->block;
	out[4] = control->blocks;
}

LAW_OPS(cw_hstcp, .probe = cw_hstcp_probe);

#endif
