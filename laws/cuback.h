/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* CUBACK: CUBIC by the ACK clock (draft-kazuho-ccwg-cuback, K. Oku). The window grows by a segment for every D(w)
 * acknowledged, where A(w) is what must be acknowledged since the start of the epoch for the window to reach w:
 *
 *   D(w) = max(2, A(w + 1) - A(w)),  A = min(A_cubic, A_reno)
 *   A_cubic(w) = bandwidth (K + cbrt((w - W_max)/C)),  K = cbrt((W_max - cwnd_epoch)/C)
 *   A_reno(w)  = (w - cwnd_epoch)(w + cwnd_epoch - 1)/(2 alpha) up to cwnd_prior, with alpha = 1 beyond
 *
 * Nothing follows the clock, so pauses need no care. Amounts are in 2^-8 segments, times in 2^-16 s.
 */
#ifndef LFN_CUBACK_H
#define LFN_CUBACK_H

#include "law.h"

#define CUBACK_BANDWIDTH_MAX (1ull << 34) /* 67 million segments a second */
#define CUBACK_RTT_MIN_ns 1000ull
#define CUBACK_LEAST (2u << 8)            /* D >= 2 */
#define CUBACK_MOST (1u << 31)

struct cuback {
	u64 w_max;      /* Q32.32; 0: where the epoch begins */
	u64 cwnd_epoch; /* Q32.32 */
	u64 cwnd_prior; /* Q32.32; 0: no event yet */
	u64 bandwidth;  /* segments/s, Q8 */
	u64 undo_w_max;
	u64 undo_cwnd_epoch;
	u64 undo_cwnd_prior;
	u64 undo_bandwidth;
	u32 due;        /* D(cwnd), Q8 */
	u32 pending;    /* acknowledged towards it, Q8 */
	u8 new_epoch;   /* the next ACK starts an epoch */
	u8 pad[7];
};

static inline void cuback_init(void *state, const struct law_config *config, struct law_control *control)
{
	struct cuback *s = state;

	(void)config;
	(void)control;
	s->new_epoch = 1;
}

static inline u64 cuback_rate(u64 cwnd, u64 srtt_ns)
{
	u64 rate_q16 = law_muldiv(cwnd >> 16, 1000000000, law_clamp(srtt_ns, CUBACK_RTT_MIN_ns, (1ull << 43) - 1));

	return law_clamp(rate_q16 >> 8, 1, CUBACK_BANDWIDTH_MAX);
}

/* Integer cube root of a < 2^63, bit by bit. */
static inline u64 cuback_root(u64 a)
{
	u64 root = 0;

	for (u64 bit = 1u << 20; bit; bit >>= 1)
		root |= bit & law_mask_le((root | bit) * (root | bit) * (root | bit), a);
	return root;
}

/* cbrt(d/C), Q16, for C = 0.4 and d in Q32.32 segments. */
static inline u64 cuback_time(u64 d)
{
	u64 d_q20 = law_min(d, LAW_MAX_CWND) >> 12;

	/* Up to 2048 segments the root has 2^-16, above 2^-11. */
	if (d_q20 < 1u << 31)
		return cuback_root((d_q20 * 5 / 2) << 28);
	return cuback_root((d_q20 * 5 / 2) << 13) << 5;
}

static inline u64 cuback_a_cubic(const struct cuback *s, u64 w)
{
	u64 k = cuback_time(s->w_max - s->cwnd_epoch);
	u64 t = w < s->w_max ? k - law_min(k, cuback_time(s->w_max - w)) : k + cuback_time(w - s->w_max);

	return s->bandwidth * t >> 16;
}

/* (w - from)(w + from - 1), Q8 */
static inline u64 cuback_sum(u64 w, u64 from)
{
	u64 w_q4 = w >> 28, from_q4 = from >> 28;

	return (w_q4 - law_min(from_q4, w_q4)) * (w_q4 + law_max(from_q4, 16) - 16);
}

static inline u64 cuback_a_reno(const struct cuback *s, u64 w)
{
	u64 peak = law_max(s->cwnd_prior, s->cwnd_epoch);
	u64 below = cuback_sum(law_min(w, peak), s->cwnd_epoch);

	below = below / 18 * 17 + below % 18 * 17 / 18; /* 2 alpha = 18/17 */
	return w <= peak ? below : below + cuback_sum(w, peak) / 2;
}

/* A_cubic(w + 1) - A_cubic(w) = bandwidth (1/C)/(a^2 + ab + b^2) of the two roots a and b: their difference alone
 * would be lost in rounding. */
static inline u64 cuback_d_cubic(const struct cuback *s, u64 w)
{
	u64 after = w + LAW_ONE;
	u64 a = cuback_time(w < s->w_max ? s->w_max - w : w - s->w_max);
	u64 b = cuback_time(after < s->w_max ? s->w_max - after : after - s->w_max);
	u64 product = a * b;
	u64 sum = a * a + b * b;

	sum = w < s->w_max && after > s->w_max ? sum - product : sum + product;
	return (s->bandwidth * 5 / 2 << 16) / law_max(sum >> 16, 1);
}

static inline u32 cuback_due(const struct cuback *s, u64 w)
{
	u64 after = w + LAW_ONE;
	u64 cubic = cuback_a_cubic(s, w), reno = cuback_a_reno(s, w);
	u64 cubic_after = cuback_a_cubic(s, after), reno_after = cuback_a_reno(s, after);
	u64 due;

	if (cubic <= reno && cubic_after <= reno_after) {
		due = cuback_d_cubic(s, w);
	} else {
		due = law_min(cubic_after, reno_after);
		due -= law_min(law_min(cubic, reno), due);
	}
	return (u32)law_clamp(due, CUBACK_LEAST, CUBACK_MOST);
}

static inline void cuback_begin(struct cuback *s, const struct law_ack *ack, const struct law_control *control)
{
	s->new_epoch = 0;
	s->cwnd_epoch = control->cwnd;
	s->w_max = law_max(s->w_max, control->cwnd);
	if (!s->cwnd_prior || !s->bandwidth) {
		s->cwnd_prior = control->cwnd;
		s->bandwidth = cuback_rate(control->cwnd, ack->srtt_ns);
	}
	s->pending = 0;
	s->due = cuback_due(s, control->cwnd);
}

static inline void cuback_on_ack(void *state, u32 n, const struct law_ack *ack, struct law_control *control)
{
	struct cuback *s = state;
	u64 pending;
	u32 more;

	if (s->new_epoch)
		cuback_begin(s, ack, control);
	pending = s->pending + ((u64)n << 8);
	if (pending < s->due) {
		s->pending = (u32)pending;
		return;
	}
	/* An ACK of many segments takes the D of the window that it found. */
	more = (u32)(pending / s->due);
	s->pending = (u32)(pending % s->due);
	control->cwnd = law_min(control->cwnd + LAW_SEG(more), LAW_MAX_CWND);
	s->due = cuback_due(s, control->cwnd);
}

static inline void cuback_on_loss(void *state, const struct law_loss *loss, struct law_control *control)
{
	struct cuback *s = state;
	u64 w = control->cwnd;

	s->undo_w_max = s->w_max;
	s->undo_cwnd_epoch = s->cwnd_epoch;
	s->undo_cwnd_prior = s->cwnd_prior;
	s->undo_bandwidth = s->bandwidth;
	/* Fast convergence: below the last maximum, leave room for others. */
	s->w_max = w < s->w_max ? w / 20 * 17 : w;
	if (loss->kind == LAW_LOSS_RTO)
		s->w_max = 0; /* RFC 9438 section 4.8 */
	s->cwnd_prior = w;
	s->bandwidth = loss->srtt_ns ? cuback_rate(w, loss->srtt_ns) : 0;
	s->new_epoch = 1;
	control->ssthresh = law_max(w * 7 / 10, LAW_MIN_SSTHRESH);
}

static inline void cuback_on_undo(void *state, struct law_control *control)
{
	struct cuback *s = state;

	s->w_max = s->undo_w_max;
	s->cwnd_epoch = s->undo_cwnd_epoch;
	s->cwnd_prior = s->undo_cwnd_prior;
	s->bandwidth = s->undo_bandwidth;
	s->new_epoch = !s->cwnd_epoch || s->w_max < s->cwnd_epoch;
	if (!s->new_epoch)
		s->due = cuback_due(s, control->cwnd);
}

static inline void cuback_probe(const void *state, const struct law_control *control, u64 *out)
{
	const struct cuback *s = state;

	(void)control;
	out[0] = s->w_max;
	out[1] = s->bandwidth;
	out[2] = s->due;
}

LAW_OPS(cuback, .on_undo = cuback_on_undo, .probe = cuback_probe);

#endif
