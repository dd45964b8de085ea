/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The bandwidth estimator of Westwood+ (Grieco & Mascolo, CCR 2004): what was delivered in a
 * window of about one round trip, over the length of that window, low-pass filtered. One sample
 * a round trip, so that compressed ACKs do not inflate it as they did the first Westwood.
 *
 * On each ACK, in this order: close the window if it is longer than max(RTT, 50 ms); credit the
 * segments that this ACK reports; keep the smallest RTT.
 */
#ifndef LFN_BANDWIDTH_H
#define LFN_BANDWIDTH_H

#include "law.h"

#define BANDWIDTH_MIN_WINDOW_NS 50000000ULL
#define BANDWIDTH_TAU_US 1000000ULL /* time constant of the first Westwood's filter (UCLA's ns-2 module) */
#define BANDWIDTH_MAX_BPS 1000000000000ULL
#define BANDWIDTH_JIFFY_NS 1000000ULL /* HZ = 1000 */

/* Rules; flags, because the sources combine them freely. 0: the filter of the paper, exact
 * credit, exact time. */
#define BANDWIDTH_CASCADE 1u      /* two filters of 7/8 in a row (Linux); else one of 9/10 (paper) */
#define BANDWIDTH_JIFFIES 2u      /* Linux: time in whole milliseconds, bwe in whole bytes a millisecond */
#define BANDWIDTH_COUNT_PAPER 4u  /* AckedCount of the 2001 paper and of Linux */
#define BANDWIDTH_COUNT_WNS2 8u   /* the same, repaired in UCLA's ns-2 module */
#define BANDWIDTH_TUSTIN 32u      /* the first Westwood: a sample an ACK, filtered by its time */
#define BANDWIDTH_RTT_DOWN 16u    /* Linux 2.6.22: rtt_min rounds down to a whole jiffy, not up */
#define BANDWIDTH_FIRST_DATA 64u  /* Linux 6.12: the first window begins as the first data leave; RTTs in jiffies */
#define BANDWIDTH_SACKS 128u      /* Linux 6.12: duplicates without SACK blocks count for nothing */
#define BANDWIDTH_PREDICTED 256u  /* Linux 6.12: AckedCount passes over what header prediction takes (LAW_ACK_PREDICTED) */

struct bandwidth {
	u64 bwe_Bps;    /* the estimate; 0: no sample yet */
	u64 stage_Bps;  /* output of the first of two filters; Tustin: the sample before */
	u64 window_ns;  /* start of the window; Tustin: the ACK before */
	u32 segments;   /* credited in the window */
	u32 accounted;  /* credited through duplicate ACKs, not yet covered cumulatively */
	u32 rtt_min_us; /* 0 before the first sample */
	u8 renew_rtt_min; /* the next sample replaces rtt_min: the path may have changed */
	u8 pad;
	u16 rtt_ms;     /* Linux 6.12: the last sample, rounded up to a jiffy */
};

static inline void bandwidth_init(struct bandwidth *b, u64 now_ns)
{
	b->window_ns = now_ns;
}

/* Segments to credit for this ACK. The default counts what SACK says was delivered, exactly. The
 * two others see cumulative ACKs only: a duplicate stands for one segment, which is taken off
 * again when the cumulative ACK covers it. */
static inline u32 bandwidth_credit(struct bandwidth *b, const struct law_ack *ack, u32 rules)
{
	u32 covered = ack->acked;

	if (!(rules & (BANDWIDTH_COUNT_PAPER | BANDWIDTH_COUNT_WNS2)))
		return ack->newly_delivered;
	if (rules & BANDWIDTH_PREDICTED && ack->flags & LAW_ACK_PREDICTED)
		return covered; /* `accounted` stays */
	if (!covered) {
		if (!(ack->flags & LAW_ACK_DUP) || (rules & BANDWIDTH_SACKS && !(ack->flags & LAW_ACK_SACK)))
			return 0;
		b->accounted++;
		return 1;
	}
	if (covered == 1)
		return 1;
	if (b->accounted < covered) {
		covered -= b->accounted;
		b->accounted = 0;
		return covered;
	}
	/* The retransmission itself was no duplicate: of `covered` segments only covered - 1 have
	 * been credited. The paper takes off all of them, and so credits one too many later. */
	b->accounted -= rules & BANDWIDTH_COUNT_WNS2 ? covered - 1 : covered;
	return 1;
}

/* One sample, into the filter. The first loads it. */
static inline void bandwidth_filter(struct bandwidth *b, u64 sample_Bps, u32 rules)
{
	u64 unit_Bps = rules & BANDWIDTH_JIFFIES ? 1000 : 1; /* Linux holds bytes a millisecond */

	if (!b->bwe_Bps) {
		b->stage_Bps = sample_Bps;
		b->bwe_Bps = sample_Bps;
	} else if (rules & BANDWIDTH_CASCADE) {
		b->stage_Bps = (7 * b->stage_Bps + sample_Bps) / unit_Bps / 8 * unit_Bps;
		b->bwe_Bps = (7 * b->bwe_Bps + b->stage_Bps) / unit_Bps / 8 * unit_Bps;
	} else {
		b->bwe_Bps = (9 * b->bwe_Bps + sample_Bps) / 10;
	}
}

static inline void bandwidth_close_window(struct bandwidth *b, const struct law_ack *ack, u32 rules)
{
	u64 length_ns = ack->now_ns - b->window_ns, bytes = (u64)b->segments * ack->mss_B;
	u64 sample_Bps;

	if (rules & BANDWIDTH_JIFFIES)
		sample_Bps = bytes / (length_ns / BANDWIDTH_JIFFY_NS) * 1000;
	else
		sample_Bps = law_muldiv(bytes, 1000000000, length_ns);
	bandwidth_filter(b, sample_Bps, rules);
	b->segments = 0;
	b->window_ns = ack->now_ns;
}

/* Westwood of 2001: each ACK is a sample b_k = d_k/Delta_k, and the filter is the bilinear (Tustin)
 * form of a first-order low-pass,
 *
 *     bwe_k = ((2 tau - Delta) bwe_(k-1) + Delta (b_k + b_(k-1)))/(2 tau + Delta)
 *
 * Without an ACK for tau/2, a sample of nothing: bwe = (3 bwe + b)/5. */
static inline void bandwidth_tustin(struct bandwidth *b, const struct law_ack *ack)
{
	u64 half_ns = BANDWIDTH_TAU_US * 500, delta_us, sample_Bps;
	u32 i;

	for (i = 0; i < 32 && ack->now_ns - b->window_ns > half_ns; i++) {
		b->bwe_Bps = (3 * b->bwe_Bps + b->stage_Bps) / 5;
		b->stage_Bps = 0;
		b->window_ns += half_ns;
	}
	if (ack->now_ns - b->window_ns > half_ns) { /* after 16 s of nothing, nothing is left */
		b->bwe_Bps = 0;
		b->window_ns = ack->now_ns - half_ns;
	}
	delta_us = (ack->now_ns - b->window_ns) / 1000;
	if (!delta_us || !b->segments)
		return; /* the next ACK brings the sum */
	sample_Bps = law_min((u64)b->segments * ack->mss_B * 1000000 / delta_us, BANDWIDTH_MAX_BPS);
	b->bwe_Bps = ((2 * BANDWIDTH_TAU_US - delta_us) * b->bwe_Bps + delta_us * (sample_Bps + b->stage_Bps)) /
		     (2 * BANDWIDTH_TAU_US + delta_us);
	b->stage_Bps = sample_Bps;
	b->segments = 0;
	b->window_ns = ack->now_ns;
}

/* Close the window if the ACK ends it. */
static inline void bandwidth_on_time(struct bandwidth *b, const struct law_ack *ack, u32 rules)
{
	/* The last sample where this ACK has none would need memory; the smoothed one does as well. */
	u64 rtt_ns = ack->rtt_ns ? ack->rtt_ns : ack->srtt_ns, length_ns = ack->now_ns - b->window_ns;

	if (ack->rtt_ns)
		b->rtt_ms = (u16)law_clamp((ack->rtt_ns + BANDWIDTH_JIFFY_NS - 1) / BANDWIDTH_JIFFY_NS, 1, 0xffff);
	if (rules & BANDWIDTH_FIRST_DATA) {
		rtt_ns = b->rtt_ms * BANDWIDTH_JIFFY_NS;
		length_ns = (ack->now_ns / BANDWIDTH_JIFFY_NS - b->window_ns / BANDWIDTH_JIFFY_NS) * BANDWIDTH_JIFFY_NS;
	}
	if (length_ns > law_max(rtt_ns, BANDWIDTH_MIN_WINDOW_NS) && rtt_ns)
		bandwidth_close_window(b, ack, rules);
}

static inline void bandwidth_on_sample(struct bandwidth *b, const struct law_ack *ack, u32 rules)
{
	if (rules & BANDWIDTH_TUSTIN) {
		b->segments += bandwidth_credit(b, ack, rules);
		bandwidth_tustin(b, ack);
	} else if (rules & BANDWIDTH_FIRST_DATA && !b->rtt_min_us) {
		/* Their ACK counts as a duplicate. */
		b->window_ns = ack->now_ns - (ack->rtt_ns ? ack->rtt_ns : ack->srtt_ns);
		b->segments = b->accounted = 1;
	} else {
		bandwidth_on_time(b, ack, rules);
		b->segments += bandwidth_credit(b, ack, rules);
	}
	if (ack->rtt_ns && (ack->rtt_ns < b->rtt_min_us * 1000ULL || !b->rtt_min_us || b->renew_rtt_min)) {
		u64 rtt_us = law_clamp(ack->rtt_ns / 1000, 1, ~0U - 1000);

		if (rules & BANDWIDTH_JIFFIES)
			rtt_us = law_max((rtt_us + (rules & BANDWIDTH_RTT_DOWN ? 0 : 999)) / 1000, 1) * 1000;
		b->rtt_min_us = (u32)rtt_us;
		b->renew_rtt_min = 0;
	}
}

/* bwe * rtt_min, the window that fills the path and leaves its queue empty; Q32.32 segments,
 * truncated to bytes. */
static inline u64 bandwidth_window(const struct bandwidth *b, u32 mss_B)
{
	u64 window_B = law_muldiv(b->bwe_Bps, b->rtt_min_us, 1000000);

	return law_min(law_muldiv(window_B, LAW_ONE, mss_B), LAW_MAX_CWND);
}

#endif
