/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Constant-rate increase (Floyd, CCR 21(5), 1991): Reno's window grows by a segment a round trip, so its
 * rate grows by 1/RTT^2 and a long path is starved. Growing by c RTT^2 a round trip instead makes every
 * rate grow by c segments/s each second, whatever the RTT.
 *
 *   rate    c RTT^2 a round trip, c = 4 segments/s^2 (windowOption_ 2 of ns-2)
 *   window  c RTT: the window grows by c segments a second (windowOption_ 5)
 */
#ifndef LFN_CONST_RATE_H
#define LFN_CONST_RATE_H

#include "law.h"

#define CONST_RATE_WINDOW 1u
#define CONST_RATE_C 4ULL /* windowConstant_ of ns-2 */

struct const_rate {
	u32 variant;
};

static inline void const_rate_init(void *state, const struct law_config *config, struct law_control *control)
{
	struct const_rate *s = state;

	(void)control;
	s->variant = config->variant;
}

/* Segments a round trip, Q16, for the smoothed RTT. */
static inline u64 const_rate_gain_q16(const struct const_rate *s, u64 srtt_ns)
{
	u64 rtt_us = law_min(srtt_ns / 1000, 1 << 30);

	if (s->variant == CONST_RATE_WINDOW)
		return (CONST_RATE_C * rtt_us << 16) / 1000000;
	return CONST_RATE_C * rtt_us * rtt_us / 15258789; /* 10^12/2^16 */
}

static inline void const_rate_on_ack(void *state, u32 n, const struct law_ack *ack, struct law_control *control)
{
	law_add_per_rtt(control, const_rate_gain_q16(state, ack->srtt_ns), n);
}

static inline void const_rate_on_loss(void *state, const struct law_loss *loss, struct law_control *control)
{
	(void)state;
	(void)loss;
	control->ssthresh = law_max(control->cwnd >> 1, LAW_MIN_SSTHRESH);
}

LAW_OPS(const_rate);

#endif
