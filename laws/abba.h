/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ABBA: Accelerated Bottleneck Bandwidth Adaptation (draft-kazuho-ccwg-abba, K. Oku). CUBIC of RFC 9438, which grows
 * faster while the RTT says that the queue of the bottleneck is empty, by about 2 ms of queue a round trip. If the queue
 * does not return for twice as long as CUBIC would need to fill it, slow start begins again. Losses and CE marks reduce
 * the window as in CUBIC.
 *
 *   bottom  = min(max(smoothed - variance, min_rtt), smallest RTT since the last event)
 *   drained = min(max(smoothed - variance/2, min_rtt + 2 ms), smallest RTT since the last event + 2 ms)
 *
 * with smoothed and variance over the smallest RTTs between events. RTTs are in us.
 */
#ifndef LFN_ABBA_H
#define LFN_ABBA_H

#include "cubic.h"

#define ABBA_QUEUE_US 10000u      /* between bottom and full, at least */
#define ABBA_STEP_US 2000u        /* of queue in a round trip */
#define ABBA_FIRST_VARIANCE_US 5000u
#define ABBA_RATIO_ONE (1u << 20)
#define ABBA_RATIO_MIN (ABBA_RATIO_ONE / 40)
#define ABBA_RATIO_MAX (ABBA_RATIO_ONE * 3 / 14) /* (1/0.7 - 1)/2 */
#define ABBA_RTT_MAX_US (1u << 30)
#define ABBA_FACTOR_MAX (1u << 16) /* of full_rtt over bottom_rtt */

struct abba_seen {
	u32 full_us;     /* full_rtt; 0: unset */
	u32 period_us;   /* cur_period_min; 0: unset */
	u32 smoothed_us; /* past_periods_min; 0: unset */
	u32 variance_us;
	u64 refill_us;   /* min(K, reno) of this epoch; 0: it has not begun */
};

struct abba {
	struct cubic cubic;
	struct abba_seen seen;
	struct abba_seen before; /* the last event */
	u64 high_ns;             /* last_high_queue_at */
	u32 latest_us;
	u32 smooth_us;           /* smoothed_rtt */
	u32 min_us;              /* min_rtt */
	u8 from_slow_start;      /* where the recovery under way began */
	u8 pad[3];
};

static inline void abba_init(void *state, const struct law_config *config, struct law_control *control)
{
	struct abba *s = state;
	struct law_config rfc = *config;

	rfc.variant = CUBIC_RFC;
	cubic_init(&s->cubic, &rfc, control);
}

static inline u32 abba_us(u64 ns) { return (u32)law_clamp(ns / 1000, 1, ABBA_RTT_MAX_US); }

static inline u32 abba_bottom(const struct abba *s)
{
	const struct abba_seen *seen = &s->seen;
	u64 floor = law_max(seen->smoothed_us - law_min(seen->variance_us, seen->smoothed_us), s->min_us);

	return (u32)(seen->period_us ? law_min(floor, seen->period_us) : floor);
}

/* drain_threshold */
static inline u32 abba_drained(const struct abba *s)
{
	const struct abba_seen *seen = &s->seen;
	u64 floor = seen->smoothed_us - law_min(seen->variance_us / 2, seen->smoothed_us);
	u64 threshold = law_max(floor, s->min_us + ABBA_STEP_US);

	return (u32)(seen->period_us ? law_min(threshold, seen->period_us + ABBA_STEP_US) : threshold);
}

/* Of a window in a round trip, 2^-20. */
static inline u32 abba_ratio(const struct abba *s)
{
	u64 ratio = (u64)ABBA_STEP_US * ABBA_RATIO_ONE / abba_drained(s);

	return (u32)law_clamp(ratio, ABBA_RATIO_MIN, ABBA_RATIO_MAX);
}

static inline int abba_is_drained(const struct abba *s)
{
	const struct abba_seen *seen = &s->seen;

	return seen->smoothed_us && seen->full_us > abba_bottom(s) + ABBA_QUEUE_US
	       && (u64)seen->full_us * 20 > (u64)s->latest_us * 21 && s->latest_us < abba_drained(s);
}

/* min(K, reno), with cwnd_epoch/beta - cwnd_epoch = 3/7 of the window at the start of the epoch. */
static inline u64 abba_refill_us(u64 cwnd_epoch, u32 full_us)
{
	u64 k_us = (u64)cubic_k(cwnd_epoch / 7 * 3) * 1000000 >> 20;
	u64 reno_us = (cwnd_epoch >> 24) * 17 / 21 * full_us >> 8; /* 3/7 over alpha_cubic = 9/17 */

	return law_max(law_min(k_us, reno_us), 1);
}

/* cbrt(full_rtt/bottom_rtt), Q15 */
static inline u64 abba_factor(const struct abba *s)
{
	u64 ratio_q30 = law_min(((u64)s->seen.full_us << 30) / law_max(abba_bottom(s), 1), (u64)ABBA_FACTOR_MAX << 30);

	return cubic_root(ratio_q30 << 15);
}

static inline void abba_recalibrate(struct abba *s, struct law_control *control)
{
	s->cubic.curve.w_max = 0;
	s->cubic.curve.new_epoch = 1;
	s->seen.refill_us = 0;
	control->ssthresh = LAW_INFINITE;
}

static inline void abba_check_queue(struct abba *s, const struct law_ack *ack, struct law_control *control)
{
	u64 since_us;

	if (s->smooth_us >= abba_bottom(s) + ABBA_QUEUE_US) {
		s->high_ns = ack->now_ns;
		return;
	}
	since_us = (ack->now_ns - s->high_ns) / 1000;
	if (!s->seen.full_us || !s->seen.refill_us)
		return;
	/* The root is rarely needed: full_rtt is above bottom_rtt, else the interval is shorter. */
	if (s->seen.full_us >= abba_bottom(s) && since_us < 2 * s->seen.refill_us)
		return;
	if (since_us >= 2 * (s->seen.refill_us * abba_factor(s) >> 15))
		abba_recalibrate(s, control);
}

static inline void abba_on_sample(void *state, const struct law_ack *ack, struct law_control *control)
{
	struct abba *s = state;

	cubic_on_sample(&s->cubic, ack, control);
	if (ack->ce)
		s->high_ns = ack->now_ns;
	if (!ack->rtt_ns)
		return;
	s->latest_us = abba_us(ack->rtt_ns);
	s->smooth_us = abba_us(ack->srtt_ns);
	s->min_us = abba_us(ack->min_rtt_ns);
	if (!(ack->flags & LAW_ACK_OPEN))
		return;
	if (!s->seen.period_us || s->latest_us < s->seen.period_us)
		s->seen.period_us = s->latest_us;
	if (control->cwnd >= control->ssthresh && ack->flags & LAW_ACK_CWND_LIMITED)
		abba_check_queue(s, ack, control);
}

static inline void abba_on_ack(void *state, u32 n, const struct law_ack *ack, struct law_control *control)
{
	struct abba *s = state;
	u64 faster = control->cwnd + ((u64)n * abba_ratio(s) << 12);

	if (s->cubic.curve.new_epoch)
		s->seen.refill_us = s->seen.full_us ? abba_refill_us(control->cwnd, s->seen.full_us) : 0;
	cubic_curve_on_ack(&s->cubic, n, ack, control);
	if (ack->flags & LAW_ACK_CWND_LIMITED && abba_is_drained(s))
		control->cwnd = law_min(law_max(control->cwnd, faster), LAW_MAX_CWND);
}

static inline void abba_end_period(struct abba_seen *seen)
{
	u32 sample = seen->period_us, off;

	seen->period_us = 0;
	if (!sample)
		return;
	if (!seen->smoothed_us) {
		seen->smoothed_us = sample;
		seen->variance_us = ABBA_FIRST_VARIANCE_US;
		return;
	}
	off = sample > seen->smoothed_us ? sample - seen->smoothed_us : seen->smoothed_us - sample;
	seen->variance_us = (u32)((seen->variance_us * 3ull + off) / 4);
	seen->smoothed_us = (u32)((seen->smoothed_us * 7ull + sample) / 8);
}

static inline void abba_on_loss(void *state, const struct law_loss *loss, struct law_control *control)
{
	struct abba *s = state;

	s->before = s->seen;
	s->from_slow_start = control->cwnd < control->ssthresh;
	abba_end_period(&s->seen);
	s->seen.refill_us = 0;
	cubic_on_loss(&s->cubic, loss, control);
}

static inline void abba_on_open(void *state, const struct law_ack *ack, struct law_control *control)
{
	struct abba *s = state;

	(void)control;
	/* smooth_us is from before this ACK, which on_sample gets later. */
	if (s->from_slow_start) {
		s->seen.full_us = s->smooth_us;
		s->high_ns = ack->now_ns;
	}
	s->from_slow_start = 0;
}

/* All but high_ns. */
static inline void abba_on_undo(void *state, struct law_control *control)
{
	struct abba *s = state;

	cubic_on_undo(&s->cubic, control);
	s->seen = s->before;
	if (s->cubic.curve.new_epoch)
		s->seen.refill_us = 0;
	s->from_slow_start = 0;
}

static inline void abba_probe(const void *state, const struct law_control *control, u64 *out)
{
	const struct abba *s = state;

	(void)control;
	out[0] = s->seen.full_us;
	out[1] = abba_bottom(s);
	out[2] = abba_drained(s);
	out[3] = s->seen.smoothed_us;
	out[4] = s->seen.variance_us;
	out[5] = s->seen.refill_us;
	out[6] = s->cubic.curve.w_max;
	out[7] = abba_ratio(s);
}

LAW_WIDE_OPS(abba, .on_sample = abba_on_sample, .on_open = abba_on_open, .on_undo = abba_on_undo,
	     .probe = abba_probe);

#endif
