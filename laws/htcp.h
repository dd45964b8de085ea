/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* H-TCP (Leith & Shorten 2004; draft-leith-tcp-htcp-06). Additive increase that grows with the
 * time since the last congestion event (htcp_alpha.h); adaptive back-off to RTT_min/RTT_max, which
 * empties the queue and no more, or to one half when the throughput before two events differs by
 * more than a fifth.
 *
 * Variant paper: as published, in microseconds and Q10, Delta from the event. Variants linux and
 * ns2: as the module of Linux does it, in jiffies of 1 ms, Q7 and whole segments, the increase
 * scaled by RTT_min/100 ms, Delta from the end of recovery. ns-2 holds the module of Linux 2.6.22,
 * which rounds an RTT down to a jiffy where later ones round it up. Variant rtt: as paper, the increase
 * scaled by RTT_min/100 ms within [0.1, 2].
 */
#ifndef LFN_HTCP_H
#define LFN_HTCP_H

#include "htcp_alpha.h"

#define HTCP_LINUX 1u
#define HTCP_NS2 2u
#define HTCP_RTT 3u
#define HTCP_BETA_MIN_Q10 512u       /* 0.5 */
#define HTCP_BETA_MAX_Q10 819u       /* 0.8 */
#define HTCP_BETA_MAX_LINUX_Q10 816u /* 102/128 */
#define HTCP_LINUX_MIN_RTT_US 10000u /* adaptive back-off above this RTT only */
#define HTCP_LINUX_STEP_US 20000u    /* RTT_max rises by no more than this at a time */

struct htcp {
	struct htcp_clock clock;
	u64 interval_ns;       /* start of the interval over which throughput is measured */
	u32 interval_segments; /* delivered in it */
	u32 min_rtt_us;
	u32 max_rtt_us;
	u32 undo_max_rtt_us;
	u32 b_now;  /* throughput, smoothed over intervals, segments/s */
	u32 b_max;  /* its maximum since the last event; 0: none yet */
	u32 b_prev; /* b_max of the event before; 0: none yet */
	u32 undo_b_prev;
	u32 cnt;         /* linux: segments acknowledged since cwnd last grew */
	u16 open_acked;  /* linux: segments that the last ACK in state Open acknowledged; 1 once they are counted */
	u8 variant;
	u8 linux_rules : 1;
	u8 stable : 1;     /* linux: the event before was within the fifth ("modeswitch") */
	u8 in_episode : 1; /* linux: the next return to Open restarts Delta */
	u8 reduced : 1;    /* linux: no sample came since the event */
};

static inline u32 htcp_share_q10(u32 beta_q10)
{
	return 2 * (1024 - beta_q10);
}

/* |B - B_prev| <= B_prev/5, closed as in Linux. */
static inline int htcp_is_steady(const struct htcp *h)
{
	u64 b5 = 5ULL * h->b_max;

	return 4ULL * h->b_prev <= b5 && b5 <= 6ULL * h->b_prev;
}

/* Linux: the increase, a whole number of segments per round trip before the share, scaled by
 * RTT_min/100 ms within [0.1, 2]. Evaluated when cwnd grows and at events only. */
static inline void htcp_linux_alpha(struct htcp *h, u64 delta_ns)
{
	u64 delta_ms = delta_ns / HTCP_MS_NS, alpha = 1;

	if (delta_ms > HTCP_DELTA_L_MS) {
		u64 x_ms = law_min(delta_ms, HTCP_DELTA_MAX_MS) - HTCP_DELTA_L_MS;

		alpha = 1 + (10 * x_ms + (x_ms / 2) * (x_ms / 2) / 1000) / 1000;
	}
	if (h->min_rtt_us) {
		u64 scale_q3 = law_clamp(800000 / h->min_rtt_us, 4, 80); /* 100 ms / RTT_min */

		alpha = law_max(8 * alpha / scale_q3, 1);
	}
	h->clock.gain_q16 = (u32)law_min(alpha * h->clock.share_q10 * 64, ~0U);
}

static inline void htcp_init(void *state, const struct law_config *config, struct law_control *control)
{
	struct htcp *h = state;

	(void)control;
	h->variant = (u8)config->variant;
	h->linux_rules = config->variant == HTCP_LINUX || config->variant == HTCP_NS2;
	h->interval_ns = config->now_ns;
	htcp_clock_start(&h->clock, config->now_ns, htcp_share_q10(HTCP_BETA_MIN_Q10));
}

static inline void htcp_measure_rtt(struct htcp *h, const struct law_ack *ack)
{
	u64 rtt_us;

	if (ack->rtt_ns >= h->min_rtt_us * 1000ULL && ack->rtt_ns <= h->max_rtt_us * 1000ULL && h->min_rtt_us)
		return; /* nearly every ACK */
	rtt_us = law_clamp(ack->rtt_ns / 1000, 1, ~0U - 1000);
	if (h->linux_rules)
		rtt_us = law_max((rtt_us + (h->variant == HTCP_NS2 ? 0 : 999)) / 1000, 1) * 1000; /* whole jiffies */
	if (!h->min_rtt_us || rtt_us < h->min_rtt_us)
		h->min_rtt_us = (u32)rtt_us;
	/* Linux looks at RTT_max in state Open alone, so a rise by more than the step in Disorder hides the rest. */
	if (!(ack->flags & LAW_ACK_OPEN) || (h->variant == HTCP_LINUX && ack->flags & LAW_ACK_DISORDER))
		return;
	if (h->max_rtt_us < h->min_rtt_us)
		h->max_rtt_us = h->min_rtt_us;
	if (rtt_us > h->max_rtt_us && (!h->linux_rules || rtt_us <= h->max_rtt_us + HTCP_LINUX_STEP_US))
		h->max_rtt_us = (u32)rtt_us;
}

/* Throughput over intervals of about one round trip. */
static inline void htcp_measure_throughput(struct htcp *h, const struct law_ack *ack, u64 cwnd)
{
	u64 elapsed_ns = ack->now_ns - h->interval_ns, since_ns = ack->now_ns - h->clock.event_ns, b;
	int fresh;

	if (!(ack->flags & LAW_ACK_OPEN)) {
		h->interval_segments = 0;
		h->interval_ns = ack->now_ns;
		return;
	}
	if (h->linux_rules) {
		u64 min_rtt_ns = h->min_rtt_us * 1000ULL;
		u64 alpha = law_max(h->clock.gain_q16 >> 16, 1);

		h->interval_segments += ack->acked;
		if (h->interval_segments + alpha < cwnd >> 32 || elapsed_ns < min_rtt_ns || !min_rtt_ns)
			return;
		b = h->interval_segments * 1000ULL / (elapsed_ns / HTCP_MS_NS);
		fresh = since_ns < 4 * min_rtt_ns;
	} else {
		h->interval_segments += ack->newly_delivered;
		if (elapsed_ns < ack->srtt_ns || !ack->srtt_ns)
			return;
		b = h->interval_segments * 1000000000ULL / elapsed_ns;
		fresh = since_ns <= 3 * ack->srtt_ns || !h->b_max;
	}
	b = law_min(b, ~0U);
	if (fresh) {
		h->b_now = (u32)b;
		h->b_max = (u32)b;
	} else {
		h->b_now = (u32)((3ULL * h->b_now + b) / 4);
		h->b_max = (u32)law_max(h->b_max, h->b_now);
	}
	h->interval_segments = 0;
	h->interval_ns = ack->now_ns;
}

static inline void htcp_on_sample(void *state, const struct law_ack *ack, struct law_control *control)
{
	struct htcp *h = state;

	if (ack->rtt_ns)
		htcp_measure_rtt(h, ack);
	if ((ack->flags & (LAW_ACK_OPEN | LAW_ACK_DISORDER)) == LAW_ACK_OPEN)
		h->open_acked = (u16)law_min(ack->acked, 0xffff);
	htcp_measure_throughput(h, ack, control->cwnd);
	/* Still with the old Delta: the large gain lasts until cwnd next grows. Linux measures by an ACK before it tells of
	 * the event that the ACK brings, so that sample has the gain from before. */
	if (h->reduced)
		htcp_linux_alpha(h, h->clock.event_ns - h->clock.undo_event_ns);
	h->reduced = 0;
}

/* rtt: alpha times RTT_min/100 ms. */
static inline u64 htcp_scaled(const struct htcp *h, u64 alpha_q16)
{
	if (h->variant != HTCP_RTT || !h->min_rtt_us)
		return alpha_q16;
	return alpha_q16 * law_clamp(h->min_rtt_us, 10000, 200000) / 100000;
}

static inline void htcp_on_ack(void *state, u32 n, const struct law_ack *ack, struct law_control *control)
{
	struct htcp *h = state;

	if (!h->linux_rules) {
		law_add_per_rtt(control, htcp_scaled(h, htcp_clock_gain_q16(&h->clock, ack->now_ns)), n);
	} else if ((u64)h->cnt * h->clock.gain_q16 >> 16 >= control->cwnd >> 32) {
		/* One segment an ACK at most, and the ACK that brings it is not counted. */
		control->cwnd = law_min(control->cwnd + LAW_ONE, LAW_MAX_CWND);
		h->cnt = 0;
		htcp_linux_alpha(h, ack->now_ns - h->clock.event_ns);
	} else {
		h->cnt += h->variant == HTCP_LINUX ? h->open_acked : n;
	}
	h->open_acked = 1;
}

/* The fraction kept, RTT_min/RTT_max within bounds. Q10; Linux in Q7. */
static inline u32 htcp_rtt_ratio_q10(const struct htcp *h)
{
	u64 ratio_q10;

	if (!h->max_rtt_us)
		return HTCP_BETA_MIN_Q10;
	if (h->linux_rules) {
		ratio_q10 = ((u64)h->min_rtt_us << 7) / h->max_rtt_us * 8;
		return (u32)law_clamp(ratio_q10, HTCP_BETA_MIN_Q10, HTCP_BETA_MAX_LINUX_Q10);
	}
	ratio_q10 = ((u64)h->min_rtt_us << 10) / h->max_rtt_us;
	return (u32)law_clamp(ratio_q10, HTCP_BETA_MIN_Q10, HTCP_BETA_MAX_Q10);
}

static inline u32 htcp_paper_beta_q10(const struct htcp *h)
{
	int known = h->b_prev && h->b_max;

	return known && !htcp_is_steady(h) ? HTCP_BETA_MIN_Q10 : htcp_rtt_ratio_q10(h);
}

/* Adapts from the second steady event in a row on, and on RTTs above 10 ms only. */
static inline u32 htcp_linux_beta_q10(struct htcp *h)
{
	int adapt = h->stable && h->min_rtt_us > HTCP_LINUX_MIN_RTT_US && h->max_rtt_us;

	if (!htcp_is_steady(h)) {
		h->stable = 0;
		return HTCP_BETA_MIN_Q10;
	}
	if (!adapt)
		h->stable = 1;
	return adapt ? htcp_rtt_ratio_q10(h) : HTCP_BETA_MIN_Q10;
}

static inline void htcp_on_loss(void *state, const struct law_loss *loss, struct law_control *control)
{
	struct htcp *h = state;
	u32 beta_q10 = h->linux_rules ? htcp_linux_beta_q10(h) : htcp_paper_beta_q10(h);
	u64 ssthresh = (control->cwnd >> 10) * beta_q10;

	h->undo_b_prev = h->b_prev;
	h->undo_max_rtt_us = h->max_rtt_us;
	if (h->linux_rules) {
		ssthresh = LAW_SEG((control->cwnd >> 32) * (beta_q10 / 8) >> 7);
		h->b_prev = h->b_max;
		h->clock.share_q10 = htcp_share_q10(beta_q10);
		h->clock.undo_event_ns = h->clock.event_ns;
		h->clock.event_ns = loss->now_ns;
		h->cnt = 0;
		h->in_episode = 1;
		h->reduced = 1;
	} else {
		if (h->b_max)
			h->b_prev = h->b_max;
		h->b_max = 0;
		htcp_clock_on_loss(&h->clock, loss->now_ns, htcp_share_q10(beta_q10));
	}
	/* Slowly fading memory, so that RTT_max follows a path whose queue became shorter. */
	if (h->max_rtt_us > h->min_rtt_us) {
		u32 fades_us = (u32)((h->max_rtt_us - h->min_rtt_us) * 95ULL / 100);

		h->max_rtt_us = h->min_rtt_us + (h->variant == HTCP_LINUX ? fades_us - fades_us % 1000 : fades_us);
	}
	control->ssthresh = law_max(ssthresh, LAW_MIN_SSTHRESH);
}

static inline void htcp_on_open(void *state, const struct law_ack *ack, struct law_control *control)
{
	struct htcp *h = state;

	(void)control;
	if (h->in_episode)
		h->clock.event_ns = ack->now_ns;
	h->in_episode = 0;
}

static inline void htcp_on_undo(void *state, struct law_control *control)
{
	struct htcp *h = state;

	(void)control;
	htcp_clock_undo(&h->clock);
	h->max_rtt_us = h->undo_max_rtt_us;
	h->b_prev = h->undo_b_prev;
	h->in_episode = 0;
}

static inline void htcp_probe(const void *state, const struct law_control *control, u64 *out)
{
	const struct htcp *h = state;

	(void)control;
	out[0] = htcp_scaled(h, h->clock.gain_q16);
	out[1] = 1024 - h->clock.share_q10 / 2;
	out[2] = h->min_rtt_us;
	out[3] = h->max_rtt_us;
	out[4] = h->b_max;
	out[5] = h->b_prev;
}

LAW_OPS(htcp, .on_sample = htcp_on_sample, .on_open = htcp_on_open, .on_undo = htcp_on_undo,
	.probe = htcp_probe);

#endif
