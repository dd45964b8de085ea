/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Queueing delay, one value a round trip, as Vegas (Brakmo, O'Malley, Peterson 1994) measures it:
 * the smallest RTT of the round, which delayed ACKs and bursts cannot raise, against the smallest
 * of the connection.
 */
#ifndef LFN_DELAY_H
#define LFN_DELAY_H

#include "law.h"

#define DELAY_MIN_SAMPLES 3u /* fewer may all be of delayed ACKs (Linux) */

struct delay {
	u32 base_us;  /* smallest RTT of the connection; 0 before the first sample */
	u32 min_us;   /* smallest in the round under way */
	u32 samples;  /* in the round under way */
	u32 round_us; /* smallest in the last round; 0: it had too few samples */
	u32 round_end; /* linux: deliveries at which the round under way ends, modulo 2^32 */
	u32 starts;    /* the ACK begins a round */
};

/* Linux's modules begin a round whenever the sender comes back to Open, from Disorder too (measured on
 * 6.12: YeAH and Vegas). Returns whether the ACK begins one; those outside Open count for nothing. */
static inline u32 delay_linux_round(struct delay *d, const struct law_ack *ack)
{
	u32 open = (ack->flags & (LAW_ACK_OPEN | LAW_ACK_DISORDER)) == LAW_ACK_OPEN;
	u32 starts = open && ack->acked && (s32)((u32)ack->delivered - d->round_end) > 0;

	if (starts || !open)
		d->round_end = (u32)ack->delivered + ack->inflight;
	if (!open)
		d->samples = 0;
	return starts;
}

/* Outside Open nothing counts but the base: the queue of an episode is not that of the window. */
static inline void delay_on_sample(struct delay *d, const struct law_ack *ack, u32 linux_rules)
{
	if (linux_rules && ack->flags & LAW_ACK_RESTART) {
		d->base_us = 0; /* Linux takes the path for a new one */
		d->samples = 0;
	}
	if (ack->rtt_ns) {
		u32 rtt_us = (u32)law_clamp(ack->rtt_ns / 1000, 1, ~0U >> 1);

		if (!d->base_us || rtt_us < d->base_us)
			d->base_us = rtt_us;
		if (!d->samples || rtt_us < d->min_us)
			d->min_us = rtt_us;
		d->samples++;
	}
	if (!(ack->flags & LAW_ACK_OPEN))
		d->samples = 0;
	d->starts = linux_rules ? delay_linux_round(d, ack) : ack->flags & LAW_ACK_ROUND_START;
	if (d->starts) {
		d->round_us = d->samples < DELAY_MIN_SAMPLES ? 0 : d->min_us;
		d->samples = 0;
	}
}

/* Segments of a window that waited in the queue in the last round, w (round - base)/per, Q16;
 * 0 if the round had too few samples. */
static inline u64 delay_queue_q16(const struct delay *d, u64 w, u32 per_us)
{
	if (d->round_us <= d->base_us)
		return 0;
	return law_muldiv(w >> 16, d->round_us - d->base_us, per_us);
}

#endif
