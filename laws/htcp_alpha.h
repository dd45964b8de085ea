/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The clock of H-TCP (Leith & Shorten, draft-leith-tcp-htcp-06): the additive increase is a
 * function of the time Delta since the last congestion event, not of the window,
 *
 *     abar(Delta) = 1                                        Delta <= 1 s
 *     abar(Delta) = 1 + 10 (Delta - 1) + ((Delta - 1)/2)^2   Delta > 1 s
 *
 * in segments per round trip. The gain in use is share * abar; H-TCP's share is 2(1 - beta),
 * so that a flow that keeps more after a loss also grows more slowly.
 *
 * Delta counts in whole milliseconds. The gain is therefore a step function of time, and it is
 * kept until the step ends: the result is that of an evaluation at every ACK, without its cost.
 */
#ifndef LFN_HTCP_ALPHA_H
#define LFN_HTCP_ALPHA_H

#include "law.h"

#define HTCP_DELTA_L_MS 1000ULL       /* up to here as standard TCP */
#define HTCP_DELTA_MAX_MS 3600000ULL  /* keeps the square within 64 bits */
#define HTCP_MS_NS 1000000ULL

struct htcp_clock {
	u64 event_ns;      /* origin of Delta */
	u64 undo_event_ns; /* its value before the last event */
	u64 refresh_ns;    /* when gain_q16 ends */
	u32 gain_q16;      /* share * abar, segments per round trip; at most 65536 */
	u32 share_q10;     /* factor on abar */
};

/* abar for Delta = delta_ms, Q10. Below the exact value by at most 0.002 + 0.0005 (Delta - 1 s):
 * Q10 truncates twice, and the half of an odd number of milliseconds is rounded down. */
static inline u64 htcp_abar_q10(u64 delta_ms)
{
	u64 x_ms = law_min(delta_ms, HTCP_DELTA_MAX_MS);

	x_ms = x_ms > HTCP_DELTA_L_MS ? x_ms - HTCP_DELTA_L_MS : 0;
	return 1024 + 10240 * x_ms / 1000 + (x_ms / 2) * (x_ms / 2) * 1024 / 1000000;
}

static inline void htcp_clock_refresh(struct htcp_clock *c, u64 now_ns)
{
	u64 delta_ms = now_ns > c->event_ns ? (now_ns - c->event_ns) / HTCP_MS_NS : 0;
	u64 gain_q16 = htcp_abar_q10(delta_ms) * c->share_q10 / 16; /* Q10 * Q10 -> Q16 */

	c->gain_q16 = (u32)law_min(gain_q16, ~0U);
	c->refresh_ns = c->event_ns + (law_max(delta_ms, HTCP_DELTA_L_MS) + 1) * HTCP_MS_NS;
}

static inline void htcp_clock_start(struct htcp_clock *c, u64 now_ns, u32 share_q10)
{
	c->event_ns = now_ns;
	c->share_q10 = share_q10;
	htcp_clock_refresh(c, now_ns);
}

/* A congestion event: Delta = 0. */
static inline void htcp_clock_on_loss(struct htcp_clock *c, u64 now_ns, u32 share_q10)
{
	c->undo_event_ns = c->event_ns;
	htcp_clock_start(c, now_ns, share_q10);
}

static inline void htcp_clock_undo(struct htcp_clock *c)
{
	c->event_ns = c->undo_event_ns;
	c->refresh_ns = 0;
}

/* Segments per round trip at now_ns, Q16. */
static inline u32 htcp_clock_gain_q16(struct htcp_clock *c, u64 now_ns)
{
	if (now_ns >= c->refresh_ns)
		htcp_clock_refresh(c, now_ns);
	return c->gain_q16;
}

#endif
