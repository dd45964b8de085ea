/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* CUBIC: RFC 9438; S. Ha, I. Rhee, L. Xu, "CUBIC: a new TCP-friendly high-speed TCP variant",
 * SIGOPS OSR 42(5), 2008. The window follows W(t) = C (t - K)^3 + W_max, where t is the time
 * since the last reduction: steep far from the window of the last loss, flat around it, whatever
 * the RTT. It never stays below what an AIMD flow of the same mean as Reno would have.
 *
 * `rfc` is RFC 9438 (keeps 0.7) and `2005` the paper (keeps 0.8), both in Q32.32 segments and
 * 2^-20 s. `linux` adds whole segments, one for every cnt acknowledged, with the units and the
 * rounding of Linux 6.12 at HZ = 1000. `ns2` is Linux 2.6.22, as ns-2's TCP-Linux has it.
 */
#ifndef LFN_CUBIC_H
#define LFN_CUBIC_H

#include "law.h"

#define CUBIC_RFC 0u
#define CUBIC_LINUX 1u
#define CUBIC_2005 2u
#define CUBIC_NS2 3u

#define CUBIC_TIME_MAX_ns 511000000000ull /* C t^3 is then 53 million segments, and t still fits */
#define CUBIC_ALPHA_RFC (LAW_ONE * 9 / 17) /* 3 (1 - 0.7) / (1 + 0.7), RFC 9438 section 4.3 */
#define CUBIC_ALPHA_2005 (LAW_ONE / 3)     /* 3 b / (2 - b), b = 0.2 */

#define CUBIC_LINUX_C 410ull           /* bic_scale 41 * 10: C = 0.4004 in 1/1024 */
#define CUBIC_LINUX_ROOT 2681735677ull /* 2^40 / 410 */
#define CUBIC_LINUX_BETA 717u          /* kept fraction, 1/1024 */
#define CUBIC_NS2_BETA 819u
#define CUBIC_NS2_S_MAX 16u            /* max_increment beyond W_max, segments a 100 ms */
#define CUBIC_LINUX_OFFSET_MAX 355000ull /* 1/1024 s; 410 offset^3 still fits 64 bits */
#define CUBIC_LINUX_HOLD_MS 31u        /* HZ / 32: cnt stays in force as long, if cwnd does not change */
#define CUBIC_LINUX_CNT_START 20u      /* largest cnt while no maximum is known */
#define CUBIC_NS2_CNT_START 50u        /* cnt then */

/* rfc, 2005 */
struct cubic_curve {
	u64 epoch_ns;      /* start of the epoch */
	u64 last_ns;       /* last ACK */
	u64 w_max;         /* Q32.32; 0: unknown */
	u64 w_est;         /* window of the AIMD flow, Q32.32 */
	u64 cwnd_prior;    /* window at the last event, Q32.32 */
	u64 undo_w_max;
	u64 undo_cwnd_prior;
	u32 k_q20;         /* time from the start of the epoch to w_max, 2^-20 s */
	u16 new_epoch;     /* the next ACK starts an epoch */
	u16 undo_new_epoch;
};

/* linux, ns2: windows in segments, times in ms (jiffies) */
struct cubic_linux {
	u64 epoch_ms;    /* start of the epoch; 0: the next ACK starts one */
	u64 last_ms;     /* when cnt was computed */
	u32 last_cwnd;   /* window for which cnt was computed */
	u32 last_max;    /* 0: unknown */
	u32 origin;      /* plateau of the curve */
	u32 k;           /* time from the start of the epoch to origin, 1/1024 s */
	u32 delay_min_us; /* smallest RTT; 0: none yet */
	u32 ack_cnt;     /* acknowledged towards the next segment of tcp_cwnd */
	u32 tcp_cwnd;    /* window of the AIMD flow */
	u32 cnt;         /* segments to acknowledge for +1 */
	u32 cwnd_cnt;    /* acknowledged towards it */
	u32 delayed_ack; /* ns2: EWMA of the segments that one ACK covers, Q4 */
};

struct cubic {
	u32 variant;
	u8 in_loss; /* linux */
	u8 pad[3];
	union {
		struct cubic_curve curve;
		struct cubic_linux lin;
	};
};

static inline u32 cubic_is_linux(const struct cubic *s)
{
	return s->variant == CUBIC_LINUX || s->variant == CUBIC_NS2;
}

static inline void cubic_linux_reset(struct cubic_linux *s)
{
	s->epoch_ms = 0;
	s->last_ms = 0;
	s->last_cwnd = 0;
	s->last_max = 0;
	s->origin = 0;
	s->k = 0;
	s->delay_min_us = 0;
	s->ack_cnt = 0;
	s->tcp_cwnd = 0;
	s->cnt = 0;
	s->delayed_ack = 2 << 4;
}

static inline void cubic_init(void *state, const struct law_config *config, struct law_control *control)
{
	struct cubic *s = state;

	(void)control;
	s->variant = config->variant;
	if (cubic_is_linux(s))
		cubic_linux_reset(&s->lin);
	else
		s->curve.new_epoch = 1;
}

/* C d^3 with C = 0.4 and d < 2^29 in 2^-20 s, as Q32.32 segments. */
static inline u64 cubic_rise(u64 d_q20)
{
	return (d_q20 * d_q20 >> 24) * d_q20 / 40; /* Q16 * Q20 = Q36; 0.4 / 2^4 = 1 / 40 */
}

/* The largest d whose cubic_rise is below `rise`, or 0: RFC 9438 equation 2, bit by bit. */
static inline u32 cubic_k(u64 rise)
{
	u64 d = 0;

	for (u64 bit = 1u << 28; bit; bit >>= 1)
		d |= bit & law_mask_le(cubic_rise(d | bit) + 1, rise);
	return (u32)d;
}

/* W(t), RFC 9438 equation 1. */
static inline u64 cubic_window(const struct cubic_curve *s, u64 t_ns)
{
	u64 t_q20 = (law_min(t_ns, CUBIC_TIME_MAX_ns) << 11) / 1953125; /* 2^20 / 10^9 = 2^11 / 5^9 */

	if (t_q20 >= s->k_q20)
		return s->w_max + cubic_rise(t_q20 - s->k_q20);
	return s->w_max - law_min(cubic_rise(s->k_q20 - t_q20), s->w_max);
}

/* The AIMD flow adds `alpha` a round trip (Q32), then 1 from the window of the last event on, except with the paper's alpha. */
static inline void cubic_curve_grow(struct cubic_curve *s, u64 alpha, u32 n, const struct law_ack *ack,
				    struct law_control *control)
{
	u64 w = control->cwnd, most = law_min(w + LAW_SEG(n), LAW_MAX_CWND); /* slow start's growth */
	u64 inverse, t_ns, target;

	if (s->new_epoch) {
		s->new_epoch = 0;
		s->epoch_ns = ack->now_ns;
		s->w_est = w;
		s->w_max = law_max(s->w_max, w);
		s->k_q20 = cubic_k(s->w_max - w);
	}
	t_ns = ack->now_ns - s->epoch_ns;
	inverse = (1ull << 63) / (w >> 16); /* 1/cwnd in Q47, for both increments */

	if (alpha != CUBIC_ALPHA_2005 && s->w_est >= s->cwnd_prior)
		alpha = LAW_ONE;
	s->w_est = law_min(s->w_est + ((alpha >> 16) * inverse >> 31) * n, LAW_MAX_CWND);

	if (cubic_window(s, t_ns) < s->w_est) {
		control->cwnd = law_clamp(s->w_est, w, most);
		return;
	}
	/* RFC 9438 section 4.2: towards where the curve will be one RTT from now. */
	target = law_clamp(cubic_window(s, t_ns + ack->srtt_ns), w, w + w / 2);
	control->cwnd = law_min(w + (((target - w) >> 16) * inverse >> 31) * n, most);
}

static inline void cubic_curve_on_ack(struct cubic *law, u32 n, const struct law_ack *ack,
				      struct law_control *control)
{
	cubic_curve_grow(&law->curve, law->variant == CUBIC_RFC ? CUBIC_ALPHA_RFC : CUBIC_ALPHA_2005, n, ack, control);
}

/* Integer cube root of a < 2^63, bit by bit. */
static inline u32 cubic_root(u64 a)
{
	u64 root = 0;

	for (u64 bit = 1u << 20; bit; bit >>= 1)
		root |= bit & law_mask_le((root | bit) * (root | bit) * (root | bit), a);
	return (u32)root;
}

/* Time since the start of the epoch, and one RTT ahead of it, in 1/1024 s. */
static inline u64 cubic_linux_time(const struct cubic_linux *s, u64 now_ms)
{
	u64 rtt_ms = ((u64)s->delay_min_us + 999) / 1000; /* in whole jiffies, rounded up */

	return ((now_ms - s->epoch_ms + rtt_ms) << 10) / 1000;
}

/* Segments to acknowledge for +1, from the curve alone. */
static inline u64 cubic_linux_cnt(const struct cubic_linux *s, u32 w, u64 t)
{
	u64 offset = law_min(t > s->k ? t - s->k : s->k - t, CUBIC_LINUX_OFFSET_MAX);
	u64 delta = CUBIC_LINUX_C * offset * offset * offset >> 40;
	u64 target = t > s->k ? s->origin + delta : s->origin - law_min(delta, s->origin);

	return target > w ? w / (target - w) : 100ull * w;
}

/* Largest cnt that keeps up with the AIMD flow, which adds 3 (1 - beta) / (1 + beta) a window. */
static inline u64 cubic_linux_friendly_cnt(struct cubic_linux *s, u32 w, u32 beta)
{
	u32 scale = 8 * (1024 + beta) / 3 / (1024 - beta);
	u32 each = (u32)((u64)w * scale >> 3);
	u32 more;

	if (s->ack_cnt > each) {
		more = (s->ack_cnt - 1) / each;
		s->ack_cnt -= more * each;
		s->tcp_cwnd += more;
	}
	return s->tcp_cwnd > w ? w / (s->tcp_cwnd - w) : ~0ull;
}

static inline void cubic_linux_update(struct cubic *law, u32 w, u32 n, u64 now_ms)
{
	struct cubic_linux *s = &law->lin;
	u64 cnt = s->cnt, t;

	s->ack_cnt += n;
	if (w == s->last_cwnd && now_ms - s->last_ms <= CUBIC_LINUX_HOLD_MS)
		return;
	/* The curve moves once a jiffy (not yet in 2.6.22). */
	if (!s->epoch_ms || now_ms != s->last_ms || law->variant == CUBIC_NS2) {
		s->last_cwnd = w;
		s->last_ms = now_ms;
		if (!s->epoch_ms) {
			s->epoch_ms = now_ms;
			s->ack_cnt = n;
			s->tcp_cwnd = w;
			s->origin = s->last_max > w ? s->last_max : w;
			s->k = cubic_root(CUBIC_LINUX_ROOT * (s->origin - w));
		}
		t = cubic_linux_time(s, now_ms);
		cnt = cubic_linux_cnt(s, w, t);
		if (law->variant == CUBIC_NS2 && t >= s->k && s->delay_min_us)
			cnt = law_max(cnt, (u64)w * 100000 / CUBIC_NS2_S_MAX / s->delay_min_us);
		if (!s->last_max)
			cnt = law->variant == CUBIC_NS2 ? CUBIC_NS2_CNT_START : law_min(cnt, CUBIC_LINUX_CNT_START);
	}
	if (law->variant == CUBIC_NS2) {
		cnt = law_min(cnt, cubic_linux_friendly_cnt(s, w, CUBIC_NS2_BETA));
		cnt = law_max((cnt << 4) / s->delayed_ack, 1);
	} else {
		cnt = law_min(cnt, cubic_linux_friendly_cnt(s, w, CUBIC_LINUX_BETA));
		cnt = law_max(cnt, 2); /* at most 1.5 times a round trip */
	}
	s->cnt = (u32)law_min(cnt, 1u << 31);
}

static inline void cubic_on_ack(void *state, u32 n, const struct law_ack *ack, struct law_control *control)
{
	struct cubic *s = state;

	if (!cubic_is_linux(s)) {
		cubic_curve_on_ack(s, n, ack, control);
		return;
	}
	if (s->variant == CUBIC_NS2)
		n = 1;
	cubic_linux_update(s, (u32)(control->cwnd >> 32), n, ack->now_ns / 1000000);
	/* 2.6.22 compares before it counts: cnt + 1 ACKs for one segment. */
	law_add_every(control, &s->lin.cwnd_cnt, s->lin.cnt + (s->variant == CUBIC_NS2), n);
}

static inline void cubic_linux_on_sample(struct cubic *law, const struct law_ack *ack)
{
	struct cubic_linux *s = &law->lin;
	u64 now_ms = ack->now_ns / 1000000;
	u64 rtt_us = law_clamp(ack->rtt_ns / 1000, 1, ~0u);

	if ((ack->flags & LAW_ACK_OPEN) && ack->acked)
		s->delayed_ack += (u32)law_min(ack->acked, 1u << 20) - (s->delayed_ack >> 4);
	/* For one second after a reduction the queue of the last epoch may still be there. */
	if (ack->rtt_ns && (!s->epoch_ms || now_ms - s->epoch_ms >= 1000))
		if (!s->delay_min_us || rtt_us < s->delay_min_us)
			s->delay_min_us = (u32)rtt_us;
}

/* RFC 9438 section 5.8: time without enough to send is no part of the epoch. */
static inline void cubic_curve_on_sample(struct cubic_curve *s, u64 now_ns, u32 flags)
{
	if ((flags & LAW_ACK_OPEN) && !(flags & LAW_ACK_CWND_LIMITED))
		s->epoch_ns += now_ns - s->last_ns;
	s->last_ns = now_ns;
}

static inline void cubic_on_sample(void *state, const struct law_ack *ack, struct law_control *control)
{
	struct cubic *s = state;

	(void)control;
	if (s->variant == CUBIC_LINUX && law_enters_loss(&s->in_loss, ack))
		cubic_linux_reset(&s->lin);
	if (cubic_is_linux(s)) {
		cubic_linux_on_sample(s, ack);
		return;
	}
	cubic_curve_on_sample(&s->curve, ack->now_ns, ack->flags);
}

/* An event at the window w. Fast convergence: below the last maximum `less` takes its place, room for others. */
static inline void cubic_curve_end(struct cubic_curve *s, u64 w, u64 less, u32 kind)
{
	s->undo_w_max = s->w_max;
	s->undo_cwnd_prior = s->cwnd_prior;
	s->undo_new_epoch = s->new_epoch;
	s->w_max = w < s->w_max ? less : w;
	if (kind == LAW_LOSS_RTO)
		s->w_max = 0; /* RFC 9438 section 4.8: K = 0, and W_max where the epoch begins */
	s->cwnd_prior = w;
	s->new_epoch = 1;
}

static inline u64 cubic_curve_ssthresh(struct cubic *law, u64 w, u32 kind)
{
	u32 keep = law->variant == CUBIC_RFC ? 7 : 8; /* tenths */

	cubic_curve_end(&law->curve, w, w * (10 + keep) / 20, kind);
	return w * keep / 10;
}

static inline u64 cubic_linux_ssthresh(struct cubic *law, u32 w, u32 kind)
{
	struct cubic_linux *s = &law->lin;
	u64 beta = law->variant == CUBIC_NS2 ? CUBIC_NS2_BETA : CUBIC_LINUX_BETA;

	s->cwnd_cnt = 0;
	s->epoch_ms = 0;
	s->last_max = w < s->last_max ? (u32)(w * (1024 + beta) / 2048) : w;
	if (kind == LAW_LOSS_RTO)
		cubic_linux_reset(s);
	return LAW_SEG(w * beta / 1024);
}

static inline void cubic_on_loss(void *state, const struct law_loss *loss, struct law_control *control)
{
	struct cubic *s = state;
	u64 w = cubic_is_linux(s) ? cubic_linux_ssthresh(s, (u32)(control->cwnd >> 32), loss->kind)
				  : cubic_curve_ssthresh(s, control->cwnd, loss->kind);

	control->ssthresh = law_max(w, LAW_MIN_SSTHRESH);
}

/* RFC 9438 section 4.9. If no ACK has begun a new epoch, the old one goes on; else one begins from
 * the restored window, on the same curve. */
static inline void cubic_curve_undo(struct cubic_curve *s)
{
	s->new_epoch = s->new_epoch ? s->undo_new_epoch : 1;
	s->w_max = s->undo_w_max;
	s->cwnd_prior = s->undo_cwnd_prior;
}

/* Linux keeps what the event taught it. */
static inline void cubic_on_undo(void *state, struct law_control *control)
{
	struct cubic *s = state;

	(void)control;
	if (!cubic_is_linux(s))
		cubic_curve_undo(&s->curve);
}

static inline void cubic_probe(const void *state, const struct law_control *control, u64 *out)
{
	const struct cubic *s = state;

	(void)control;
	if (cubic_is_linux(s)) {
		out[0] = LAW_SEG(s->lin.last_max);
		out[1] = LAW_SEG(s->lin.origin);
		out[2] = (u64)s->lin.k << 10;
		out[3] = LAW_SEG(s->lin.tcp_cwnd);
		out[4] = s->lin.cnt;
	} else {
		out[0] = s->curve.w_max;
		out[1] = s->curve.w_max;
		out[2] = s->curve.k_q20;
		out[3] = s->curve.w_est;
		out[4] = 0;
	}
}

LAW_OPS(cubic, .on_sample = cubic_on_sample, .on_undo = cubic_on_undo, .probe = cubic_probe);

#endif
