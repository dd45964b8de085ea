/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* FAST TCP (Jin, Wei, Low, INFOCOM 2004; Wei, Jin, Low, Hegde, ToN 14(6), 2006): a window that moves
 * towards the one that keeps alpha segments in the queue, by as much as it is away from it,
 *
 *     w <- min{ 2w, (1 - gamma) w + gamma (base/RTT w_old + alpha) }
 *
 *   paper  gamma = 1/2, every other round trip, alpha = 200
 *   every  every round trip
 *   jgn    gamma = 1, every round trip: near eq. (3) of the JGN II paper
 *   mtune  alpha by the rate: 8, 20 or 200
 *   eq3    eq. (3) as printed: as jgn, with the window of now for w_old
 */
#ifndef LFN_FAST_H
#define LFN_FAST_H

#include "delay.h"

#define FAST_PAPER 0u
#define FAST_JGN 2u
#define FAST_MTUNE 3u
#define FAST_EQ3 4u
#define FAST_ALPHA 200u
#define FAST_MI_US 750u /* a queueing delay that ends slow start */

struct fast {
	struct delay delay;
	u64 avg_ns; /* smoothed RTT of the law's own; 0: no sample since recovery */
	u64 w_prev; /* window when the round under way began; 0: none has since recovery */
	u64 target; /* to which the window grows over the round trip */
	u64 step;   /* by so much a segment, Q32; 0: it is there */
	u32 alpha;
	u16 variant;
	u16 moved;  /* every other round: the last one moved the window */
};

static inline void fast_init(void *state, const struct law_config *config, struct law_control *control)
{
	struct fast *s = state;

	(void)control;
	s->variant = (u16)config->variant;
	s->alpha = config->variant == FAST_MTUNE ? 8 : FAST_ALPHA;
}

/* avg += (RTT - avg) min(1/256, 3/w) (Cui & Andrew's FAST for ns-2). */
static inline void fast_average(struct fast *s, u64 rtt_ns, u64 w)
{
	u64 rtt = law_min(rtt_ns, 1ULL << 40), per = law_max((w >> 32) / 3, 256);

	if (!s->avg_ns)
		s->avg_ns = rtt;
	else if (rtt > s->avg_ns)
		s->avg_ns += (rtt - s->avg_ns) / per;
	else
		s->avg_ns -= (s->avg_ns - rtt) / per;
}

/* Slow start ends where a queue begins. The smallest RTT of a round tells: its bursts queue anyway. */
static inline void fast_on_sample(void *state, const struct law_ack *ack, struct law_control *control)
{
	struct fast *s = state;
	u32 at = LAW_ACK_OPEN | LAW_ACK_ROUND_START;

	delay_on_sample(&s->delay, ack, 0);
	/* The ACK that finds a loss or brings a mark measured the queue before it. on_loss may come first. */
	if (ack->rtt_ns && (ack->flags & LAW_ACK_OPEN) && !ack->newly_lost && !ack->ce)
		fast_average(s, ack->rtt_ns, control->cwnd);
	if ((ack->flags & at) != at || control->cwnd >= control->ssthresh)
		return;
	if (s->delay.round_us >= s->delay.base_us + FAST_MI_US)
		control->ssthresh = law_max(control->cwnd, LAW_MIN_SSTHRESH);
}

/* alpha by the rate in segments/s, with hysteresis. */
static inline void fast_tune(struct fast *s, u64 w)
{
	u64 rate = law_muldiv(w >> 32, 1000000000, s->avg_ns);

	if (rate > 15000)
		s->alpha = 200;
	else if (rate < 1250)
		s->alpha = 8;
	else if ((s->alpha == 200 && rate < 12500) || (s->alpha == 8 && rate > 1500))
		s->alpha = 20;
}

static inline void fast_update(struct fast *s, u64 w_old, struct law_control *control)
{
	u64 w = control->cwnd, base_ns = s->delay.base_us * 1000ULL, goal;

	if (s->variant == FAST_MTUNE)
		fast_tune(s, w);
	goal = (law_muldiv(w_old >> 16, law_min(base_ns, s->avg_ns), s->avg_ns) << 16) + LAW_SEG(s->alpha);
	if (s->variant != FAST_JGN && s->variant != FAST_EQ3)
		goal = law_min(w / 2 + goal / 2, 2 * w);
	goal = law_clamp(goal, LAW_MIN_SSTHRESH, LAW_MAX_CWND);
	s->step = 0;
	if (goal > w) {
		/* Spread over a round trip: all at once would be a burst. */
		s->target = goal;
		s->step = law_min(law_muldiv((goal - w) >> 16, LAW_ONE, w >> 16), LAW_ONE);
	} else {
		control->cwnd = goal;
		control->ssthresh = law_min(control->ssthresh, goal); /* no slow start */
	}
}

static inline void fast_on_ack(void *state, u32 n, const struct law_ack *ack, struct law_control *control)
{
	struct fast *s = state;

	if ((ack->flags & LAW_ACK_ROUND_START) && (ack->flags & LAW_ACK_OPEN) && s->avg_ns) {
		u64 w_old = s->w_prev && s->variant != FAST_EQ3 ? s->w_prev : control->cwnd;

		s->w_prev = control->cwnd;
		s->moved = !(s->moved && (s->variant == FAST_PAPER || s->variant == FAST_MTUNE));
		if (s->moved)
			fast_update(s, w_old, control);
	}
	if (s->step && control->cwnd < s->target)
		control->cwnd = law_min(control->cwnd + s->step * n, s->target);
}

static inline void fast_forget(struct fast *s)
{
	s->avg_ns = 0;
	s->w_prev = 0;
	s->step = 0;
	s->moved = 0;
}

static inline void fast_on_loss(void *state, const struct law_loss *loss, struct law_control *control)
{
	(void)loss;
	fast_forget(state);
	control->ssthresh = law_max(control->cwnd >> 1, LAW_MIN_SSTHRESH);
}

static inline void fast_on_undo(void *state, struct law_control *control)
{
	(void)control;
	fast_forget(state);
}

static inline void fast_probe(const void *state, const struct law_control *control, u64 *out)
{
	const struct fast *s = state;

	(void)control;
	out[0] = s->alpha;
	out[1] = s->delay.base_us;
	out[2] = s->avg_ns / 1000;
}

LAW_OPS(fast, .on_sample = fast_on_sample, .on_undo = fast_on_undo, .probe = fast_probe);

#endif
