/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* BIC: L. Xu, K. Harfoush, I. Rhee, "Binary increase congestion control (BIC) for fast
 * long-distance networks", INFOCOM 2004. After a loss the window searches for the size at which
 * it lost: in steps of S_max while that is far, then half of the way each round trip; beyond it,
 * in steps that double, until S_max again.
 *
 * `paper` is the INFOCOM algorithm, decided once a round trip: that is what makes its search
 * binary. `linux` adds whole segments, one for every cnt acknowledged, with the constants and the
 * rounding of Linux 6.12. `ns2` is Linux 2.6.22, as ns-2's TCP-Linux has it: it counts ACKs, not
 * segments.
 */
#ifndef LFN_BIC_H
#define LFN_BIC_H

#include "law.h"

#define BIC_PAPER 0u
#define BIC_LINUX 1u
#define BIC_NS2 2u

#define BIC_LOW_WINDOW 14u /* segments; below it, Reno */

#define BIC_S_MAX_Q16 (32u << 16) /* largest step, segments a round trip */
#define BIC_S_MIN (LAW_ONE / 100) /* a smaller step ends the search, segments */

#define BIC_LINUX_BETA 819u    /* kept fraction, 1/1024 */
#define BIC_LINUX_B 4u         /* the search goes 1/B of the way */
#define BIC_LINUX_S_MAX 16u    /* max_increment, segments a round trip */
#define BIC_LINUX_SMOOTH 20u   /* smooth_part: round trips from last_max - B to last_max */
#define BIC_LINUX_CNT_START 20u /* largest cnt while no maximum is known */
#define BIC_LINUX_HOLD_MS 31u  /* HZ / 32: cnt stays in force as long, if cwnd does not change */

struct bic {
	/* paper */
	u64 max_win;      /* window of the last loss, Q32.32; LAW_INFINITE: unknown */
	u64 undo_max_win; /* max_win before the last event */
	/* linux, ns2 */
	u64 last_ms;     /* when cnt was computed */
	u32 last_max;    /* segments; 0: unknown */
	u32 last_cwnd;   /* window for which cnt was computed, segments */
	u32 cnt;         /* segments to acknowledge for +1 */
	u32 cwnd_cnt;    /* acknowledged towards it */
	u32 delayed_ack; /* EWMA of the segments that one ACK covers, Q4 */

	u32 gain_q16; /* paper: segments to add in this round trip; 0: decide at the next ACK */
	u16 variant;
	u8 in_loss; /* linux */
	u8 pad;
};

/* State after an RTO: no known maximum. */
static inline void bic_reset(struct bic *s)
{
	s->max_win = LAW_INFINITE;
	s->last_ms = 0;
	s->last_max = 0;
	s->last_cwnd = 0;
	s->cnt = 0;
	s->delayed_ack = 2 << 4;
}

static inline void bic_init(void *state, const struct law_config *config, struct law_control *control)
{
	struct bic *s = state;

	(void)control;
	s->variant = (u16)config->variant;
	s->undo_max_win = LAW_INFINITE;
	bic_reset(s);
}

static inline void bic_on_sample(void *state, const struct law_ack *ack, struct law_control *control)
{
	struct bic *s = state;

	(void)control;
	if (s->variant == BIC_LINUX && law_enters_loss(&s->in_loss, ack))
		bic_reset(s);
	/* Linux counts ACKs of nothing too, but none that finds something SACKed. */
	if (s->variant == BIC_LINUX ? ack->flags & LAW_ACK_DISORDER : !ack->acked)
		return;
	if (s->variant != BIC_PAPER && (ack->flags & LAW_ACK_OPEN))
		s->delayed_ack += (u32)law_min(ack->acked, 1u << 20) - (s->delayed_ack >> 4);
}

/* The paper's step for the round trip that begins: half of the way to max_win, at most S_max.
 * At max_win the maximum is unknown again, and the step doubles from 1 ("max probing"). */
static inline void bic_choose_gain(struct bic *s, struct law_control *control)
{
	u64 step;

	if (s->max_win == LAW_INFINITE) {
		s->gain_q16 = s->gain_q16 ? (u32)law_min(2 * s->gain_q16, BIC_S_MAX_Q16) : BIC_S_MAX_Q16;
		return;
	}
	step = (law_max(s->max_win, control->cwnd) - control->cwnd) / 2;
	if (step < BIC_S_MIN) {
		control->cwnd = law_max(control->cwnd, s->max_win);
		s->max_win = LAW_INFINITE;
		s->gain_q16 = 1 << 16;
	} else {
		s->gain_q16 = (u32)law_min(step >> 16, BIC_S_MAX_Q16);
	}
}

static inline void bic_paper_on_ack(struct bic *s, u32 n, const struct law_ack *ack,
				    struct law_control *control)
{
	if (control->cwnd < LAW_SEG(BIC_LOW_WINDOW)) {
		s->gain_q16 = 0;
		law_add_per_rtt(control, 1 << 16, n);
		return;
	}
	if (!s->gain_q16 || (ack->flags & LAW_ACK_ROUND_START))
		bic_choose_gain(s, control);
	law_add_per_rtt(control, s->gain_q16, n);
}

/* Linux's cnt at window w, before the allowance for delayed ACKs. Segments. */
static inline u32 bic_linux_cnt(u32 w, u32 last_max)
{
	u32 cnt;

	if (w <= BIC_LOW_WINDOW)
		return w;
	if (w < last_max) {
		u32 dist = (last_max - w) / BIC_LINUX_B;

		if (dist > BIC_LINUX_S_MAX)
			cnt = w / BIC_LINUX_S_MAX;
		else if (dist <= 1)
			cnt = w * BIC_LINUX_SMOOTH / BIC_LINUX_B;
		else
			cnt = w / dist;
	} else {
		u32 over = w - last_max;

		if (over < BIC_LINUX_B)
			cnt = w * BIC_LINUX_SMOOTH / BIC_LINUX_B;
		else if (over < BIC_LINUX_S_MAX * (BIC_LINUX_B - 1))
			cnt = w * (BIC_LINUX_B - 1) / over;
		else
			cnt = w / BIC_LINUX_S_MAX;
	}
	return last_max ? cnt : (u32)law_min(cnt, BIC_LINUX_CNT_START);
}

static inline void bic_linux_on_ack(struct bic *s, u32 n, const struct law_ack *ack,
				    struct law_control *control)
{
	u32 w = (u32)(control->cwnd >> 32);
	u64 now_ms = ack->now_ns / 1000000;

	if (w != s->last_cwnd || now_ms - s->last_ms > BIC_LINUX_HOLD_MS) {
		s->last_cwnd = w;
		s->last_ms = now_ms;
		s->cnt = bic_linux_cnt(w, s->last_max);
		if (w > BIC_LOW_WINDOW)
			s->cnt = (u32)law_max(((u64)s->cnt << 4) / s->delayed_ack, 1);
	}
	if (s->variant == BIC_NS2) /* 2.6.22 compares before it counts: cnt + 1 ACKs for one segment */
		law_add_every(control, &s->cwnd_cnt, s->cnt + 1, 1);
	else
		law_add_every(control, &s->cwnd_cnt, s->cnt, n);
}

static inline void bic_on_ack(void *state, u32 n, const struct law_ack *ack, struct law_control *control)
{
	struct bic *s = state;

	if (s->variant == BIC_PAPER)
		bic_paper_on_ack(s, n, ack, control);
	else
		bic_linux_on_ack(s, n, ack, control);
}

static inline u64 bic_paper_ssthresh(struct bic *s, u64 w)
{
	s->undo_max_win = s->max_win;
	s->gain_q16 = 0;
	if (w < LAW_SEG(BIC_LOW_WINDOW))
		return w / 2;
	/* Fast convergence: below the last maximum, leave room: half-way between w and 0.875 w. */
	s->max_win = s->max_win != LAW_INFINITE && w < s->max_win ? w - w / 16 : w;
	return w - w / 8;
}

static inline u64 bic_linux_ssthresh(struct bic *s, u32 w)
{
	s->cwnd_cnt = 0;
	s->last_max = w < s->last_max ? (u32)((u64)w * (1024 + BIC_LINUX_BETA) / 2048) : w;
	return LAW_SEG(w <= BIC_LOW_WINDOW ? w / 2 : (u64)w * BIC_LINUX_BETA / 1024);
}

static inline void bic_on_loss(void *state, const struct law_loss *loss, struct law_control *control)
{
	struct bic *s = state;
	u64 w = s->variant == BIC_PAPER ? bic_paper_ssthresh(s, control->cwnd)
					: bic_linux_ssthresh(s, (u32)(control->cwnd >> 32));

	control->ssthresh = law_max(w, LAW_MIN_SSTHRESH);
	if (loss->kind == LAW_LOSS_RTO)
		bic_reset(s);
}

/* Linux keeps what it learned from a spurious event. */
static inline void bic_on_undo(void *state, struct law_control *control)
{
	struct bic *s = state;

	(void)control;
	s->max_win = s->undo_max_win;
	s->gain_q16 = 0;
}

static inline void bic_probe(const void *state, const struct law_control *control, u64 *out)
{
	const struct bic *s = state;
	u64 max_win = s->max_win == LAW_INFINITE ? 0 : s->max_win;

	out[0] = s->variant == BIC_PAPER ? max_win : LAW_SEG(s->last_max);
	out[1] = s->variant == BIC_PAPER ? s->gain_q16 : (control->cwnd >> 16) / law_max(s->cnt, 1);
	out[2] = s->cnt;
	out[3] = bic_linux_cnt((u32)(control->cwnd >> 32), s->last_max);
	out[4] = s->delayed_ack;
}

LAW_OPS(bic, .on_sample = bic_on_sample, .on_undo = bic_on_undo, .probe = bic_probe);

#endif
