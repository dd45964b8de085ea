/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* EBB: CUBIC of RFC 9438 that asks of each loss whether a queue was there. The RTTs that the sender knows when it finds
 * a loss are those of the packets before and behind the lost one: the queue that dropped it delayed these, too.
 *
 *   A loss without a queue is no sign of congestion: it keeps the window and the curve. Any other costs what it costs
 *   CUBIC. The queue is the longest one lately, of which each sample forgets an eighth. It is low below EBB_GATE, below
 *   an eighth of a short RTT, and below half of the longest queue in a shallow buffer.
 *   A window below EBB_SMALL is cut, too: CUBIC needs no help there.
 *   A flow that loses too much without a queue is blind: its path drops without one. It is CUBIC until a loss comes with
 *   a queue. Too much is more than one segment in EBB_RATE, and EBB_FEW to EBB_MANY besides.
 *
 * Where every loss comes with a queue, it is CUBIC, bit for bit.
 */
#ifndef LFN_EBB_H
#define LFN_EBB_H

#include "cubic.h"

#define EBB_GATE_US 4000u
#define EBB_LEAST_US (EBB_GATE_US / 8) /* of a queue that is high */
#define EBB_SHORT 8u /* part of the smallest RTT that is a high queue */
#define EBB_SMALL 64u /* segments */
#define EBB_RECENT 8u /* part of the queue that a sample forgets */
#define EBB_RATE 64u
#define EBB_FEW 8u   /* lost segments besides are too many if they are more than this, */
#define EBB_MANY 32u /* and at most this, */
#define EBB_PART 64u /* and in between than this part of the window */

struct ebb {
	struct cubic_curve curve;
	u16 deep_us;   /* the longest queue so far that two samples in a row saw, at most 65 ms */
	u16 queue_us;  /* of the newest sample */
	u16 recent_us; /* the longest one lately */
	u16 lost;      /* a lost segment fills it by EBB_RATE, a delivered one empties it by 1 */
	u8 blind;
	u8 held;       /* the loss of the episode under way */
	u8 pad[6];
};

static inline void ebb_init(void *state, const struct law_config *config, struct law_control *control)
{
	struct ebb *s = state;

	(void)config;
	(void)control;
	s->curve.new_epoch = 1;
}

static inline u16 ebb_queue_us(u64 rtt_ns, u64 min_rtt_ns)
{
	return (u16)law_min((rtt_ns - law_min(min_rtt_ns, rtt_ns)) / 1000, 65535);
}

static inline int ebb_is_low(const struct ebb *s, u64 rtt_ns, u64 min_rtt_ns)
{
	u64 queue_us = law_max(ebb_queue_us(rtt_ns, min_rtt_ns), s->recent_us);
	u64 high_us = law_min(min_rtt_ns / 1000 / EBB_SHORT, EBB_GATE_US);

	return rtt_ns && queue_us < law_max(law_min(s->deep_us / 2, high_us), EBB_LEAST_US);
}

/* The fill of the bucket that a window of w may have. */
static inline u32 ebb_most(u64 w) { return (u32)law_clamp(w / EBB_PART >> 32, EBB_FEW, EBB_MANY) * EBB_RATE; }

static inline void ebb_on_sample(void *state, const struct law_ack *ack, struct law_control *control)
{
	struct ebb *s = state;
	u64 lost = s->lost + (u64)ack->newly_lost * EBB_RATE;

	s->lost = (u16)law_min(lost - law_min(lost, ack->newly_delivered), 2 * ebb_most(control->cwnd));
	if (ack->rtt_ns) { /* an ACK that the receiver delayed is alone */
		u16 queue_us = ebb_queue_us(ack->rtt_ns, ack->min_rtt_ns);

		s->deep_us = (u16)law_max(s->deep_us, law_min(s->queue_us, queue_us));
		s->recent_us = (u16)law_max(queue_us, s->recent_us - s->recent_us / EBB_RECENT);
		s->queue_us = queue_us;
	}
	cubic_curve_on_sample(&s->curve, ack->now_ns, ack->flags);
}

static inline void ebb_on_ack(void *state, u32 n, const struct law_ack *ack, struct law_control *control)
{
	struct ebb *s = state;

	cubic_curve_grow(&s->curve, CUBIC_ALPHA_RFC, n, ack, control);
}

static inline u64 ebb_cut(struct ebb *s, u64 w, u32 kind)
{
	s->lost = 0;
	cubic_curve_end(&s->curve, w, w * 17 / 20, kind);
	return law_max(w * 7 / 10, LAW_MIN_SSTHRESH);
}

static inline void ebb_on_loss(void *state, const struct law_loss *loss, struct law_control *control)
{
	struct ebb *s = state;
	u64 w = control->cwnd;
	int many = s->lost > ebb_most(w);
	int low = loss->kind == LAW_LOSS_FAST && ebb_is_low(s, loss->rtt_ns, loss->min_rtt_ns);

	if (!low)
		s->blind = 0;
	s->held = low && !s->blind && !many && w >= control->ssthresh && w >= LAW_SEG(EBB_SMALL);
	if (!s->held) {
		s->blind |= low && many;
		control->ssthresh = ebb_cut(s, w, loss->kind);
		return;
	}
	s->curve.undo_w_max = s->curve.w_max; /* an undo changes nothing */
	s->curve.undo_cwnd_prior = s->curve.cwnd_prior;
	s->curve.undo_new_epoch = s->curve.new_epoch;
	control->ssthresh = law_max(w, LAW_MIN_SSTHRESH);
}

static inline void ebb_on_open(void *state, const struct law_ack *ack, struct law_control *control)
{
	struct ebb *s = state;

	(void)ack;
	if (s->held && s->lost > ebb_most(control->ssthresh)) { /* too much was lost since */
		s->blind = 1;
		control->ssthresh = ebb_cut(s, control->ssthresh, LAW_LOSS_FAST);
		control->cwnd = control->ssthresh;
	}
	s->held = 0;
}

static inline void ebb_on_undo(void *state, struct law_control *control)
{
	struct ebb *s = state;

	(void)control;
	cubic_curve_undo(&s->curve);
	s->held = 0;
}

static inline void ebb_probe(const void *state, const struct law_control *control, u64 *out)
{
	const struct ebb *s = state;

	(void)control;
	out[0] = s->curve.w_max;
	out[1] = s->deep_us;
	out[2] = s->lost;
	out[3] = s->blind;
	out[4] = s->recent_us;
}

LAW_OPS(ebb, .on_sample = ebb_on_sample, .on_open = ebb_on_open, .on_undo = ebb_on_undo, .probe = ebb_probe);

#endif
