/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Standard TCP: RFC 5681. One segment a round trip, halved at a congestion event.
 *
 * `rfc` adds 1/cwnd for every segment (RFC 5681 eq. 3, counted in segments); `linux` adds one
 * whole segment for every cwnd segments and halves whole segments.
 */
#ifndef LFN_RENO_H
#define LFN_RENO_H

#include "law.h"

#define RENO_RFC 0u
#define RENO_LINUX 1u

struct reno {
	u32 variant;
	u32 cnt; /* segments acknowledged towards the next one (linux) */
};

static inline void reno_init(void *state, const struct law_config *config, struct law_control *control)
{
	struct reno *s = state;

	(void)control;
	s->variant = config->variant;
}

static inline void reno_on_ack(void *state, u32 n, const struct law_ack *ack, struct law_control *control)
{
	struct reno *s = state;

	(void)ack;
	if (s->variant == RENO_LINUX)
		law_add_every(control, &s->cnt, (u32)(control->cwnd >> 32), n);
	else
		law_add_per_rtt(control, 1 << 16, n);
}

static inline void reno_on_loss(void *state, const struct law_loss *loss, struct law_control *control)
{
	struct reno *s = state;
	u64 half = control->cwnd >> 1; /* RFC 5681 eq. 4, the window in place of FlightSize */

	(void)loss;
	if (s->variant == RENO_LINUX)
		half &= ~(LAW_ONE - 1);
	control->ssthresh = law_max(half, LAW_MIN_SSTHRESH);
	s->cnt = 0;
}

LAW_OPS(reno);

#endif
