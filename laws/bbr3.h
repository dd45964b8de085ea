/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* BBR version 3 (draft-ietf-ccwg-bbr, text of 2026-08-03). Beside version 1's largest rate and smallest RTT the model has
 * bounds from loss: a long-term one on what may be in flight, found by probing upwards until a round
 * trip loses more than 2 %, and short-term ones on rate and flight that follow each lossy round trip
 * down to what it delivered, until the next probe. Names are the draft's; so is the order of steps.
 */
#ifndef LFN_BBR3_H
#define LFN_BBR3_H

#include "rate.h"

enum {
	BBR3_STARTUP, BBR3_DRAIN, BBR3_DOWN, BBR3_CRUISE, BBR3_REFILL, BBR3_UP, BBR3_PROBE_RTT
};
enum { BBR3_ACKS_INIT, BBR3_ACKS_REFILLING, BBR3_ACKS_STARTING, BBR3_ACKS_FEEDBACK, BBR3_ACKS_STOPPING };

#define BBR3_UNDO 1u /* variant */

#define BBR3_INFINITE 0xffffffffu
#define BBR3_MAX_INFLIGHT (LAW_MAX_CWND >> 32)
#define BBR3_CWND_GAIN 512u         /* 2, Q8 as all gains */
#define BBR3_UP_CWND_GAIN 576u      /* 2.25 */
#define BBR3_PROBE_RTT_CWND_GAIN 128u
#define BBR3_LOSS_PERCENT 2u        /* LossThresh */
#define BBR3_BETA(x) ((x) * 7 / 10)
#define BBR3_HEADROOM(x) ((x) * 15 / 100)
#define BBR3_MIN_CWND 4u            /* MinPipeCwnd */
#define BBR3_FULL_ROUNDS 3u
#define BBR3_FULL_LOSS_COUNT 6u
#define BBR3_DRAIN_ROUNDS 3u
#define BBR3_EXTRA_ROUNDS 10u
#define BBR3_RENO_ROUNDS 63u
#define BBR3_PROBE_WAIT_MS 2000u    /* and up to a second more, at random */
#define BBR3_MIN_RTT_MS 10000u
#define BBR3_PROBE_RTT_EVERY_MS 5000u
#define BBR3_PROBE_RTT_MS 200u
#define BBR3_QUANTUM_MAX_B 65536u   /* 64 KBytes */

struct bbr3 {
	u64 delivered;             /* C.delivered */
	u64 round_end;             /* next_round_delivered */
	u64 loss_round_end;        /* loss_round_delivered */
	u64 inflight_latest;
	u64 bw_latest;
	u64 cycle_ms;              /* cycle_stamp */
	u64 min_rtt_ms;
	u64 probe_rtt_min_ms;
	u64 probe_rtt_done_ms;     /* 0: in flight is still too much */
	u64 extra_start_ns;
	u64 extra_delivered;
	u64 full_bw;
	u64 prior_cwnd;
	u64 up_acked;              /* bw_probe_up_acked */
	u64 up_acked_per_inc;      /* probe_up_acked_per_inc; 0: not growing */
	struct rate_max extra_acked;
	u32 max_bw[2];             /* of the last cycle and of this one */
	u32 bw;
	u32 bw_short;              /* bw_shortterm */
	u32 inflight_short;
	u32 inflight_long;
	u32 undo_bw_short;
	u32 undo_inflight_short;
	u32 undo_inflight_long;
	u32 min_rtt_us;            /* BBR3_INFINITE: none yet */
	u32 probe_rtt_min_us;
	u32 round;
	u32 drain_start_round;
	u32 rounds_since_up;
	u32 probe_wait_ms;
	u32 random;
	u32 initial_cwnd;          /* C.InitialCwnd */
	u32 mss_B;
	u8 state;
	u8 ack_phase;
	u8 undo_state;             /* BBR3_STARTUP or BBR3_UP; BBR3_DRAIN: none */
	u8 full_rounds;
	u8 up_rounds;              /* bw_probe_up_rounds */
	u8 loss_count;             /* ACKs of this round that found losses */
	u8 round_start;
	u8 loss_round_start;
	u8 loss_in_round;
	u8 full_now;
	u8 full_reached;
	u8 bw_probe_sample;        /* is_bw_probe_sample */
	u8 prev_probe_too_high;
	u8 prev_probe_precautionary;
	u8 probe_rtt_round_done;
	u8 idle_restart;
	u8 in_recovery;
	u8 has_rtt;
	u8 no_sack;                /* not C.has_selective_acks */
	u8 saves_once;             /* the variant undo */
	u8 saved;                  /* there, in this recovery */
};

static inline u64 bbr3_ms(u64 now_ns) { return now_ns / 1000000; }

static inline int bbr3_in_probe_bw(const struct bbr3 *s) { return s->state >= BBR3_DOWN && s->state <= BBR3_UP; }

static inline int bbr3_is_probing(const struct bbr3 *s)
{
	return s->state == BBR3_STARTUP || s->state == BBR3_REFILL || s->state == BBR3_UP;
}

static inline u32 bbr3_pacing_gain(const struct bbr3 *s)
{
	switch (s->state) {
	case BBR3_STARTUP:
		return 709; /* 2.77 */
	case BBR3_DRAIN:
		return 128; /* 0.5 */
	case BBR3_DOWN:
		return 230; /* 0.9 */
	case BBR3_UP:
		return 320; /* 1.25 */
	default:
		return RATE_GAIN_ONE;
	}
}

static inline u32 bbr3_cwnd_gain(const struct bbr3 *s)
{
	return s->state == BBR3_UP ? BBR3_UP_CWND_GAIN
	       : s->state == BBR3_PROBE_RTT ? BBR3_PROBE_RTT_CWND_GAIN : BBR3_CWND_GAIN;
}

static inline u32 bbr3_max_bw(const struct bbr3 *s) { return (u32)law_max(s->max_bw[0], s->max_bw[1]); }

/* BDPMultiple */
static inline u64 bbr3_bdp(const struct bbr3 *s, u32 bw, u32 gain)
{
	return s->min_rtt_us == BBR3_INFINITE ? s->initial_cwnd : rate_bdp(bw, s->min_rtt_us, gain);
}

/* QuantizationBudget: three send quanta of a millisecond at least, so that offloads have what they hold back. */
static inline u64 bbr3_budget(const struct bbr3 *s, u32 mss_B, u64 pacing_Bps, u64 inflight)
{
	u64 quantum = law_max(law_min(pacing_Bps / 1000, BBR3_QUANTUM_MAX_B) / law_max(mss_B, 1), 2);

	inflight = law_max(law_max(inflight, 3 * quantum), BBR3_MIN_CWND);
	return s->state == BBR3_UP ? inflight + 2 : inflight;
}

/* Inflight(bw, 1.0) */
static inline u64 bbr3_inflight(const struct bbr3 *s, const struct law_ack *ack, const struct law_control *control,
				u32 bw)
{
	return bbr3_budget(s, ack->mss_B, control->pacing_Bps, bbr3_bdp(s, bw, RATE_GAIN_ONE));
}

static inline u64 bbr3_target_inflight(const struct bbr3 *s, const struct law_control *control)
{
	return law_min(bbr3_bdp(s, s->bw, RATE_GAIN_ONE), control->cwnd >> 32);
}

static inline u64 bbr3_inflight_with_headroom(const struct bbr3 *s)
{
	u64 inflight = s->inflight_long;

	if (s->inflight_long == BBR3_INFINITE)
		return BBR3_INFINITE;
	return law_max(inflight - law_min(law_max(BBR3_HEADROOM(inflight), 1), inflight), BBR3_MIN_CWND);
}

static inline void bbr3_reset_full_bw(struct bbr3 *s, u64 bw)
{
	s->full_bw = bw;
	s->full_rounds = 0;
	s->full_now = 0;
}

static inline void bbr3_reset_short_term(struct bbr3 *s)
{
	s->bw_short = BBR3_INFINITE;
	s->inflight_short = BBR3_INFINITE;
}

static inline void bbr3_save_cwnd(struct bbr3 *s, const struct law_control *control)
{
	u64 cwnd = control->cwnd >> 32;

	s->prior_cwnd = s->in_recovery || s->state == BBR3_PROBE_RTT ? law_max(s->prior_cwnd, cwnd) : cwnd;
}

static inline void bbr3_restore_cwnd(const struct bbr3 *s, struct law_control *control)
{
	control->cwnd = law_max(control->cwnd, LAW_SEG(s->prior_cwnd));
}

/* SaveStateUponLoss. The variant undo keeps what the first loss of a recovery saved. */
static inline void bbr3_save_state(struct bbr3 *s, const struct law_control *control)
{
	bbr3_save_cwnd(s, control);
	if (s->saved)
		return;
	s->saved = s->saves_once;
	s->undo_state = BBR3_DRAIN;
	s->undo_bw_short = s->bw_short;
	s->undo_inflight_short = s->inflight_short;
	s->undo_inflight_long = s->inflight_long;
}

static inline void bbr3_start_down(struct bbr3 *s, u64 now_ms)
{
	s->loss_in_round = 0;
	s->bw_latest = 0;
	s->inflight_latest = 0;
	s->up_acked_per_inc = 0;
	s->rounds_since_up = rate_draw(&s->random, 2);
	s->probe_wait_ms = BBR3_PROBE_WAIT_MS + rate_draw(&s->random, 1000);
	s->cycle_ms = now_ms;
	s->ack_phase = BBR3_ACKS_STOPPING;
	s->round_end = s->delivered;
	s->state = BBR3_DOWN;
}

static inline void bbr3_start_refill(struct bbr3 *s)
{
	bbr3_reset_short_term(s);
	s->up_rounds = 0;
	s->up_acked = 0;
	s->prev_probe_precautionary = 0;
	s->ack_phase = BBR3_ACKS_REFILLING;
	s->round_end = s->delivered;
	s->state = BBR3_REFILL;
}

/* RaiseInflightLongtermSlope: by 1, 2, 4, ... segments a round trip. */
static inline void bbr3_raise_slope(struct bbr3 *s, const struct law_control *control)
{
	s->up_acked_per_inc = law_max((control->cwnd >> 32) >> s->up_rounds, 1);
	if (s->up_rounds < 30)
		s->up_rounds++;
}

static inline int bbr3_inflight_too_high(const struct bbr3 *s, const struct law_rate *rate)
{
	u64 lost = rate->lost - rate->prior_lost;

	return lost * 100 > (u64)rate->tx_in_flight * BBR3_LOSS_PERCENT || (lost && s->no_sack);
}

static inline void bbr3_on_lost(void *state, u64 now_ns, const struct law_rate *lost,
				const struct law_control *control)
{
	struct bbr3 *s = state;
	u64 before = law_max(lost->tx_in_flight, 1) - 1, lost_before = lost->lost - lost->prior_lost - 1;
	u64 limit = before * BBR3_LOSS_PERCENT, at_loss = before;

	s->delivered = lost->delivered;
	if (!s->loss_in_round) {
		s->loss_round_end = lost->delivered;
		bbr3_save_state(s, control);
	}
	s->loss_in_round = 1;
	if (!s->bw_probe_sample || !bbr3_inflight_too_high(s, lost))
		return;
	/* InflightAtLoss: a segment is too small a burst for more than rounding. */
	if (limit > lost_before * 100)
		at_loss += (limit - lost_before * 100) / (100 - BBR3_LOSS_PERCENT);
	s->prev_probe_too_high = 1;
	s->bw_probe_sample = 0;
	if (!(lost->flags & LAW_RATE_APP_LIMITED))
		s->inflight_long = (u32)law_clamp(at_loss, BBR3_BETA(bbr3_target_inflight(s, control)),
						  BBR3_MAX_INFLIGHT);
	if (s->state == BBR3_UP) {
		s->undo_state = BBR3_UP;
		bbr3_start_down(s, bbr3_ms(now_ns));
	}
}

/* RS.delivered */
static inline u64 bbr3_sampled(const struct law_rate *rate)
{
	return law_min(rate->delivered - rate->prior_delivered, BBR3_MAX_INFLIGHT);
}

static inline void bbr3_update_latest(struct bbr3 *s, const struct law_rate *rate, u64 bw)
{
	s->bw_latest = law_max(s->bw_latest, bw);
	s->inflight_latest = law_max(s->inflight_latest, bbr3_sampled(rate));
	s->loss_round_start = rate->prior_delivered >= s->loss_round_end;
	if (s->loss_round_start)
		s->loss_round_end = rate->delivered;
}

static inline void bbr3_update_round(struct bbr3 *s, const struct law_rate *rate)
{
	s->round_start = rate->prior_delivered >= s->round_end;
	if (!s->round_start)
		return;
	s->round_end = s->delivered;
	s->round++;
	s->rounds_since_up++;
}

static inline void bbr3_update_congestion(struct bbr3 *s, const struct law_rate *rate, u64 bw,
					  const struct law_control *control)
{
	bbr3_update_round(s, rate);
	if (bw && (bw >= bbr3_max_bw(s) || !(rate->flags & LAW_RATE_APP_LIMITED)))
		s->max_bw[1] = (u32)law_max(s->max_bw[1], bw);
	if (!s->loss_round_start)
		return;
	if (s->loss_in_round && !bbr3_is_probing(s)) {
		if (s->bw_short == BBR3_INFINITE)
			s->bw_short = bbr3_max_bw(s);
		if (s->inflight_short == BBR3_INFINITE)
			s->inflight_short = (u32)(control->cwnd >> 32);
		s->bw_short = (u32)law_max(s->bw_latest, BBR3_BETA((u64)s->bw_short));
		s->inflight_short = (u32)law_max(s->inflight_latest, BBR3_BETA((u64)s->inflight_short));
	}
	s->loss_in_round = 0;
}

static inline void bbr3_update_extra(struct bbr3 *s, const struct law_ack *ack, const struct law_control *control)
{
	u64 expected = rate_segments(s->bw, (ack->now_ns - s->extra_start_ns) / 1000);
	u64 extra;

	if (s->extra_delivered <= expected) {
		s->extra_delivered = 0;
		s->extra_start_ns = ack->now_ns;
		expected = 0;
	}
	s->extra_delivered += ack->newly_delivered;
	extra = law_min(s->extra_delivered - law_min(expected, s->extra_delivered), control->cwnd >> 32);
	rate_max_add(&s->extra_acked, s->full_reached ? BBR3_EXTRA_ROUNDS : 1, s->round, (u32)extra);
}

static inline void bbr3_check_full_bw(struct bbr3 *s, const struct law_rate *rate, u64 bw)
{
	if (s->full_now || !s->round_start || rate->flags & LAW_RATE_APP_LIMITED)
		return;
	if (bw >= s->full_bw + s->full_bw / 4) {
		bbr3_reset_full_bw(s, bw);
		return;
	}
	s->full_now = ++s->full_rounds >= BBR3_FULL_ROUNDS;
	s->full_reached |= s->full_now;
}

/* Six ACKs that found losses, more than 2 % of a round trip's segments, after one in recovery. */
static inline void bbr3_check_startup_loss(struct bbr3 *s, const struct law_ack *ack, const struct law_rate *rate)
{
	if (s->full_reached)
		return;
	if (ack->newly_lost && s->loss_count < BBR3_FULL_LOSS_COUNT)
		s->loss_count++;
	if (!s->loss_round_start)
		return;
	if (s->in_recovery && s->loss_count >= (s->no_sack ? 1 : BBR3_FULL_LOSS_COUNT)
	    && bbr3_inflight_too_high(s, rate)) {
		s->undo_state = BBR3_STARTUP;
		s->full_now = 1; /* the appendix of test cases */
		s->full_reached = 1;
		s->inflight_long = (u32)law_max(bbr3_bdp(s, bbr3_max_bw(s), RATE_GAIN_ONE), s->inflight_latest);
	}
	s->loss_count = 0;
}

static inline void bbr3_check_drain(struct bbr3 *s, const struct law_ack *ack, const struct law_control *control)
{
	if (s->state == BBR3_STARTUP && s->full_reached) {
		s->state = BBR3_DRAIN;
		s->drain_start_round = s->round;
	}
	if (s->state == BBR3_DRAIN && (ack->inflight <= bbr3_inflight(s, ack, control, s->bw)
				       || s->round > s->drain_start_round + BBR3_DRAIN_ROUNDS))
		bbr3_start_down(s, bbr3_ms(ack->now_ns));
}

static inline int bbr3_is_limited_by_long(const struct bbr3 *s, const struct law_ack *ack,
					  const struct law_control *control)
{
	return ack->flags & LAW_ACK_CWND_LIMITED && control->cwnd >> 32 >= s->inflight_long;
}

static inline void bbr3_probe_long_upward(struct bbr3 *s, const struct law_ack *ack,
					  const struct law_control *control)
{
	u64 more;

	if (!bbr3_is_limited_by_long(s, ack, control))
		return;
	s->up_acked += ack->newly_delivered;
	if (s->up_acked_per_inc && s->up_acked >= s->up_acked_per_inc) {
		more = s->up_acked / s->up_acked_per_inc;
		s->up_acked -= more * s->up_acked_per_inc;
		s->inflight_long = (u32)law_min(s->inflight_long + more, BBR3_MAX_INFLIGHT);
	}
	if (s->round_start)
		bbr3_raise_slope(s, control);
}

/* AdaptLongTermModel; whether it began a new phase. */
static inline int bbr3_adapt_long_term(struct bbr3 *s, const struct law_ack *ack, const struct law_rate *rate,
				       const struct law_control *control)
{
	if (s->ack_phase == BBR3_ACKS_STARTING && s->round_start)
		s->ack_phase = BBR3_ACKS_FEEDBACK;
	if (s->ack_phase == BBR3_ACKS_STOPPING && s->round_start) {
		s->bw_probe_sample = 0;
		s->ack_phase = BBR3_ACKS_INIT;
		/* A cycle without a sample does not end the last one's. */
		if (bbr3_in_probe_bw(s) && !(rate->flags & LAW_RATE_APP_LIMITED) && s->max_bw[1]) {
			s->max_bw[0] = s->max_bw[1];
			s->max_bw[1] = 0;
		}
		if (bbr3_in_probe_bw(s) && s->prev_probe_precautionary && !s->prev_probe_too_high) {
			bbr3_start_refill(s);
			return 1;
		}
	}
	if (s->inflight_long == BBR3_INFINITE || bbr3_inflight_too_high(s, rate))
		return 0;
	s->inflight_long = (u32)law_max(s->inflight_long, law_min(rate->tx_in_flight, BBR3_MAX_INFLIGHT));
	if (s->state == BBR3_UP)
		bbr3_probe_long_upward(s, ack, control);
	return 0;
}

static inline int bbr3_is_time_to_probe(const struct bbr3 *s, const struct law_ack *ack,
					const struct law_control *control)
{
	return bbr3_ms(ack->now_ns) > s->cycle_ms + s->probe_wait_ms
	       || s->rounds_since_up >= law_min(bbr3_target_inflight(s, control), BBR3_RENO_ROUNDS);
}

static inline int bbr3_is_time_to_go_down(struct bbr3 *s, const struct law_ack *ack, u64 bw,
					  const struct law_control *control)
{
	if (s->prev_probe_too_high && ack->inflight >= s->inflight_long) {
		s->prev_probe_precautionary = 1;
		return 1;
	}
	if (bbr3_is_limited_by_long(s, ack, control))
		bbr3_reset_full_bw(s, bw);
	else if (s->full_now)
		return 1;
	return 0;
}

/* UpdateProbeBWCyclePhase */
static inline void bbr3_update_phase(struct bbr3 *s, const struct law_ack *ack, const struct law_rate *rate,
				     u64 bw, const struct law_control *control)
{
	if (!s->full_reached || bbr3_adapt_long_term(s, ack, rate, control))
		return;
	switch (s->state) {
	case BBR3_DOWN:
	case BBR3_CRUISE:
		if (bbr3_is_time_to_probe(s, ack, control))
			bbr3_start_refill(s);
		else if (ack->inflight <= bbr3_inflight_with_headroom(s)
			 && ack->inflight <= bbr3_inflight(s, ack, control, bbr3_max_bw(s)))
			s->state = BBR3_CRUISE;
		break;
	case BBR3_REFILL:
		if (!s->round_start)
			break;
		s->bw_probe_sample = 1;
		s->ack_phase = BBR3_ACKS_STARTING;
		s->round_end = s->delivered;
		bbr3_reset_full_bw(s, bw);
		s->state = BBR3_UP;
		bbr3_raise_slope(s, control);
		break;
	case BBR3_UP:
		if (bbr3_is_time_to_go_down(s, ack, bw, control)) {
			/* A careful probe that lost nothing earns a full one. */
			s->prev_probe_too_high = 0;
			bbr3_start_down(s, bbr3_ms(ack->now_ns));
		}
		break;
	default:
		break;
	}
}

/* Returns whether the smallest RTT is due for a probe. */
static inline int bbr3_update_min_rtt(struct bbr3 *s, const struct law_ack *ack)
{
	u64 now_ms = bbr3_ms(ack->now_ns);
	u32 rtt_us = (u32)law_clamp(ack->rtt_ns / 1000, 1, BBR3_INFINITE - 1);
	int due = now_ms > s->probe_rtt_min_ms + BBR3_PROBE_RTT_EVERY_MS;

	if (ack->rtt_ns && (rtt_us < s->probe_rtt_min_us || due)) {
		s->probe_rtt_min_us = rtt_us;
		s->probe_rtt_min_ms = now_ms;
	}
	if (s->probe_rtt_min_us < s->min_rtt_us || now_ms > s->min_rtt_ms + BBR3_MIN_RTT_MS) {
		s->min_rtt_us = s->probe_rtt_min_us;
		s->min_rtt_ms = s->probe_rtt_min_ms;
	}
	return due;
}

static inline void bbr3_check_probe_rtt_done(struct bbr3 *s, u64 now_ms, struct law_control *control)
{
	if (!s->probe_rtt_done_ms || now_ms <= s->probe_rtt_done_ms)
		return;
	s->probe_rtt_min_ms = now_ms;
	bbr3_restore_cwnd(s, control);
	bbr3_reset_short_term(s);
	s->state = BBR3_STARTUP;
	if (s->full_reached) {
		bbr3_start_down(s, now_ms);
		s->state = BBR3_CRUISE;
	}
}

static inline u64 bbr3_probe_rtt_cwnd(const struct bbr3 *s)
{
	return law_max(bbr3_bdp(s, s->bw, BBR3_PROBE_RTT_CWND_GAIN), BBR3_MIN_CWND);
}

static inline u32 bbr3_check_probe_rtt(struct bbr3 *s, const struct law_ack *ack, int due,
				       struct law_control *control)
{
	u64 now_ms = bbr3_ms(ack->now_ns);
	u32 steer = 0;

	if (s->state != BBR3_PROBE_RTT && due && !s->idle_restart) {
		s->state = BBR3_PROBE_RTT;
		bbr3_save_cwnd(s, control); /* in this order: the larger of it and what was saved before */
		s->probe_rtt_done_ms = 0;
		s->ack_phase = BBR3_ACKS_STOPPING;
		s->round_end = s->delivered;
	}
	if (s->state == BBR3_PROBE_RTT) {
		steer = LAW_CONTROL_APP_LIMITED;
		if (!s->probe_rtt_done_ms && ack->inflight <= bbr3_probe_rtt_cwnd(s)) {
			s->probe_rtt_done_ms = now_ms + BBR3_PROBE_RTT_MS;
			s->probe_rtt_round_done = 0;
			s->round_end = s->delivered;
		} else if (s->probe_rtt_done_ms) {
			s->probe_rtt_round_done |= s->round_start;
			if (s->probe_rtt_round_done)
				bbr3_check_probe_rtt_done(s, now_ms, control);
		}
	}
	if (ack->newly_delivered)
		s->idle_restart = 0;
	return steer;
}

/* InitPacingRate: without the margin of 1 %. */
static inline u64 bbr3_initial_pacing_Bps(const struct bbr3 *s, u64 srtt_us)
{
	u64 bw = law_min(s->initial_cwnd * RATE_ONE / law_max(srtt_us, 1), RATE_MAX);

	return law_max((bw * s->mss_B * bbr3_pacing_gain(s) / RATE_GAIN_ONE >> 8) * 1000000 >> 16, 1);
}

static inline void bbr3_pace(struct bbr3 *s, const struct law_ack *ack, struct law_control *control)
{
	u64 pacing_Bps = rate_pacing_Bps(s->bw, ack->mss_B, bbr3_pacing_gain(s));

	if (!s->has_rtt && ack->srtt_ns) {
		s->has_rtt = 1;
		control->pacing_Bps = bbr3_initial_pacing_Bps(s, ack->srtt_ns / 1000);
	}
	if (s->full_reached || pacing_Bps > control->pacing_Bps)
		control->pacing_Bps = pacing_Bps;
}

static inline void bbr3_set_cwnd(const struct bbr3 *s, const struct law_ack *ack, struct law_control *control)
{
	u64 cwnd = control->cwnd >> 32, cap = BBR3_INFINITE;
	u64 most = bbr3_bdp(s, s->bw, bbr3_cwnd_gain(s)) + s->extra_acked.best[0].value;

	most = bbr3_budget(s, ack->mss_B, control->pacing_Bps, most);
	if (s->full_reached)
		cwnd = law_min(cwnd + ack->newly_delivered, most);
	else if (cwnd < most || ack->delivered < s->initial_cwnd)
		cwnd += ack->newly_delivered;
	cwnd = law_max(cwnd, BBR3_MIN_CWND);
	if (s->state == BBR3_PROBE_RTT)
		cwnd = law_min(cwnd, bbr3_probe_rtt_cwnd(s));
	if (s->state == BBR3_CRUISE || s->state == BBR3_PROBE_RTT)
		cap = bbr3_inflight_with_headroom(s);
	else if (bbr3_in_probe_bw(s))
		cap = s->inflight_long;
	cwnd = law_min(cwnd, law_max(law_min(cap, s->inflight_short), BBR3_MIN_CWND));
	control->cwnd = LAW_SEG(law_min(cwnd, LAW_MAX_CWND >> 32));
}

static inline void bbr3_init(void *state, const struct law_config *config, struct law_control *control)
{
	struct bbr3 *s = state;

	s->initial_cwnd = (u32)law_min(control->cwnd >> 32, BBR3_MAX_INFLIGHT);
	s->mss_B = config->mss_B;
	s->saves_once = config->variant == BBR3_UNDO;
	s->no_sack = (config->flags & LAW_CONFIG_NO_SACK) != 0;
	s->min_rtt_us = config->srtt_ns ? (u32)law_clamp(config->srtt_ns / 1000, 1, BBR3_INFINITE - 1) : BBR3_INFINITE;
	s->probe_rtt_min_us = BBR3_INFINITE;
	s->min_rtt_ms = bbr3_ms(config->now_ns);
	s->probe_rtt_min_ms = s->min_rtt_ms;
	s->extra_start_ns = config->now_ns;
	s->inflight_long = BBR3_INFINITE;
	s->undo_state = BBR3_DRAIN;
	s->random = config->seed;
	bbr3_reset_short_term(s);
	/* As if the RTT were 1 ms, until there is one. */
	control->pacing_Bps = bbr3_initial_pacing_Bps(s, 1000);
}

static inline u32 bbr3_on_control(void *state, const struct law_ack *ack, const struct law_rate *rate,
				  struct law_control *control)
{
	struct bbr3 *s = state;
	u64 bw = rate_of(rate);
	u32 steer;

	s->delivered = rate->delivered;
	s->in_recovery = (ack->flags & (LAW_ACK_RECOVERY | LAW_ACK_LOSS)) != 0;
	s->round_start = 0;
	s->loss_round_start = 0;
	if (bw) {
		bbr3_update_latest(s, rate, bw);
		bbr3_update_congestion(s, rate, bw, control);
		bbr3_update_extra(s, ack, control);
		bbr3_check_full_bw(s, rate, bw);
	}
	bbr3_check_startup_loss(s, ack, rate);
	bbr3_check_drain(s, ack, control);
	bbr3_update_phase(s, ack, rate, bw, control);
	steer = bbr3_check_probe_rtt(s, ack, bbr3_update_min_rtt(s, ack), control);
	if (s->loss_round_start) {
		s->bw_latest = bw;
		s->inflight_latest = bbr3_sampled(rate);
	}
	s->bw = (u32)law_min(bbr3_max_bw(s), s->bw_short);
	bbr3_pace(s, ack, control);
	bbr3_set_cwnd(s, ack, control);
	return steer;
}

/* HandleRestartFromIdle */
static inline void bbr3_on_restart(void *state, u64 now_ns, struct law_control *control)
{
	struct bbr3 *s = state;

	s->idle_restart = 1;
	s->extra_start_ns = now_ns;
	if (bbr3_in_probe_bw(s))
		control->pacing_Bps = rate_pacing_Bps(s->bw, s->mss_B, RATE_GAIN_ONE);
	else if (s->state == BBR3_PROBE_RTT)
		bbr3_check_probe_rtt_done(s, bbr3_ms(now_ns), control);
}

static inline void bbr3_on_loss(void *state, const struct law_loss *loss, struct law_control *control)
{
	(void)loss;
	bbr3_save_state(state, control);
}

static inline void bbr3_on_open(void *state, const struct law_ack *ack, struct law_control *control)
{
	struct bbr3 *s = state;

	(void)ack;
	s->saved = 0;
	bbr3_restore_cwnd(s, control);
}

/* HandleSpuriousLossDetection */
static inline void bbr3_on_undo(void *state, struct law_control *control)
{
	struct bbr3 *s = state;

	bbr3_restore_cwnd(s, control);
	s->loss_in_round = 0;
	bbr3_reset_full_bw(s, 0);
	s->bw_short = (u32)law_max(s->bw_short, s->undo_bw_short);
	s->inflight_short = (u32)law_max(s->inflight_short, s->undo_inflight_short);
	s->inflight_long = (u32)law_max(s->inflight_long, s->undo_inflight_long);
	if (s->undo_state == BBR3_STARTUP && s->state != BBR3_STARTUP) {
		s->full_reached = 0;
		if (s->state != BBR3_PROBE_RTT)
			s->state = BBR3_STARTUP;
	} else if (s->undo_state == BBR3_UP && s->state != BBR3_UP && s->state != BBR3_PROBE_RTT) {
		bbr3_start_refill(s);
	}
	s->undo_state = BBR3_DRAIN;
	s->saved = 0;
}

static inline void bbr3_probe(const void *state, const struct law_control *control, u64 *out)
{
	const struct bbr3 *s = state;

	(void)control;
	out[0] = s->state;
	out[1] = bbr3_pacing_gain(s);
	out[2] = s->bw;
	out[3] = s->min_rtt_us == BBR3_INFINITE ? 0 : s->min_rtt_us;
	out[4] = s->inflight_long == BBR3_INFINITE ? 0 : s->inflight_long;
	out[5] = s->inflight_short == BBR3_INFINITE ? 0 : s->inflight_short;
	out[6] = s->bw_short == BBR3_INFINITE ? 0 : s->bw_short;
	out[7] = s->round;
}

LAW_CONTROL_OPS(bbr3, .on_lost = bbr3_on_lost, .on_restart = bbr3_on_restart, .on_open = bbr3_on_open,
		.on_undo = bbr3_on_undo, .probe = bbr3_probe);

#endif
