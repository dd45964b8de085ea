/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Scalable TCP: T. Kelly, "Scalable TCP: improving performance in highspeed wide area networks",
 * CCR 33(2), 2003. Increase and decrease are both proportional to the window, so that the time
 * between losses does not depend on it: 13.42 round trips.
 */
#ifndef LFN_SCALABLE_H
#define LFN_SCALABLE_H

#include "law.h"

#define SCALABLE_PAPER 0u
#define SCALABLE_LINUX 1u /* +1 for every min(cwnd, 100) segments, 7/8 at every window */
#define SCALABLE_NS2 2u   /* Linux 2.6.22 as in ns-2: 50 for 100, to allow for delayed ACKs */

#define SCALABLE_INC (LAW_ONE / 100)     /* a = 0.01 a segment */
#define SCALABLE_LEGACY_CWND LAW_SEG(16) /* at and below it, Reno */

struct scalable {
	u32 variant;
	u32 cnt; /* segments acknowledged towards the next one (linux, ns2) */
};

static inline void scalable_init(void *state, const struct law_config *config, struct law_control *control)
{
	struct scalable *s = state;

	(void)control;
	s->variant = config->variant;
}

static inline void scalable_on_ack(void *state, u32 n, const struct law_ack *ack, struct law_control *control)
{
	struct scalable *s = state;
	u64 w = control->cwnd >> 32;

	(void)ack;
	if (s->variant != SCALABLE_PAPER)
		law_add_every(control, &s->cnt, (u32)law_min(w, s->variant == SCALABLE_NS2 ? 50 : 100), n);
	else if (control->cwnd > SCALABLE_LEGACY_CWND)
		control->cwnd = law_min(control->cwnd + SCALABLE_INC * n, LAW_MAX_CWND);
	else
		law_add_per_rtt(control, 1 << 16, n);
}

static inline void scalable_on_loss(void *state, const struct law_loss *loss, struct law_control *control)
{
	struct scalable *s = state;
	u64 w = control->cwnd;

	(void)loss;
	if (s->variant != SCALABLE_PAPER) {
		w &= ~(LAW_ONE - 1);
		w -= (w >> 3) & ~(LAW_ONE - 1);
	} else {
		w -= w > SCALABLE_LEGACY_CWND ? w >> 3 : w >> 1; /* b = 0.125 */
	}
	control->ssthresh = law_max(w, LAW_MIN_SSTHRESH);
	s->cnt = 0;
}

LAW_OPS(scalable);

#endif
