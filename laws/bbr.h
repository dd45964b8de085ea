/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* BBR version 1 as Linux has it (Cardwell et al., ACM Queue 14(5), 2016; draft-cardwell-iccrg-bbr-00). A
 * model of the path, the largest delivery rate of ten round trips and the smallest RTT of ten seconds,
 * sets the pacing rate and twice their product the window. Every eighth round trip probes for more
 * with 5/4 of the rate, the next drains with 3/4; every ten seconds four segments in flight measure the
 * RTT again. Loss is not a signal, except in the first round trip of a recovery and for policers.
 */
#ifndef LFN_BBR_H
#define LFN_BBR_H

#include "rate.h"

enum { BBR_STARTUP, BBR_DRAIN, BBR_PROBE_BW, BBR_PROBE_RTT };
enum { BBR_OPEN, BBR_RECOVERY, BBR_LOSS };

#define BBR_HIGH_GAIN 739u      /* 2/ln 2 = 2885/1000, Q8 */
#define BBR_DRAIN_GAIN 88u      /* its inverse */
#define BBR_CWND_GAIN 512u
#define BBR_CYCLE 8u            /* phases of PROBE_BW: 5/4, 3/4, 1 x 6 */
#define BBR_BW_ROUNDS 10u
#define BBR_FULL_ROUNDS 3u      /* without a quarter more: the pipe is full */
#define BBR_MIN_RTT_MS 10000u
#define BBR_PROBE_RTT_MS 200u
#define BBR_MIN_CWND 4u
#define BBR_INITIAL_CWND 10u
#define BBR_TSO_MAX_B 65215u    /* 64 kB less headers */
#define BBR_TSO_LOW_BPS 150000u /* 1.2 Mbit/s: below, segments leave one by one */
#define BBR_EXTRA_ROUNDS 5u     /* of each of the two halves of the window for extra_acked */
#define BBR_EXTRA_RESET (1u << 20)
#define BBR_EXTRA_MAX_US 100000u
#define BBR_LT_ROUNDS 4u        /* least interval of the policer detector; most is four times that */
#define BBR_LT_LOSS 50u         /* of 256: lossy */
#define BBR_LT_DIFF_BPS 500u    /* 4 kbit/s */
#define BBR_LT_USE_ROUNDS 48u

struct bbr {
	struct rate_max bw;
	u32 cycle_us;          /* start of the phase of PROBE_BW */
	u32 epoch_us;          /* start of the interval for extra_acked */
	u32 delivered_ms;      /* when a segment was last delivered */
	u32 min_rtt_us;        /* ~0: none yet */
	u32 min_rtt_ms;        /* its time; clocks are low bits */
	u32 probe_rtt_done_ms; /* end of PROBE_RTT; 0: the pipe is not drained yet */
	u32 round;
	u32 round_end;         /* delivered when the round began: its end is sent after that */
	u32 lt_bw;             /* the policer's rate, or the last candidate; 0: none */
	u32 lt_delivered;      /* start of the interval */
	u32 lt_lost;
	u32 lt_ms;
	u32 full_bw;           /* baseline of the search for a full pipe */
	u32 prior_cwnd;        /* before recovery or PROBE_RTT */
	u32 extra_now;         /* largest of this half of its window, and of the one before */
	u32 extra_old;
	u32 epoch_acked;
	u32 random;
	u32 mode : 2, cycle : 3, state : 2, full_rounds : 2, extra_rounds : 5, lt_rounds : 7,
		full : 1, conserve : 1, idle_restart : 1, probe_rtt_round_done : 1, lt_sampling : 1, lt_use : 1,
		has_rtt : 1, timeout : 1;
};

static inline u32 bbr_ms(u64 now_ns) { return (u32)(now_ns / 1000000); }

static inline u32 bbr_us(u64 now_ns) { return (u32)(now_ns / 1000); }

static inline u64 bbr_bw(const struct bbr *s) { return s->lt_use ? s->lt_bw : s->bw.best[0].value; }

static inline u32 bbr_pacing_gain(const struct bbr *s)
{
	if (s->mode == BBR_STARTUP)
		return BBR_HIGH_GAIN;
	if (s->mode == BBR_DRAIN)
		return BBR_DRAIN_GAIN;
	if (s->mode == BBR_PROBE_RTT || s->lt_use || s->cycle > 1)
		return RATE_GAIN_ONE;
	return s->cycle ? RATE_GAIN_ONE * 3 / 4 : RATE_GAIN_ONE * 5 / 4;
}

/* Segments that leave at once where offloads let them. */
static inline u64 bbr_burst(const struct law_ack *ack, const struct law_control *control)
{
	u64 least = control->pacing_Bps < BBR_TSO_LOW_BPS ? 1 : 2;

	return law_min(law_max(rate_quantum(control->pacing_Bps, ack->mss_B, BBR_TSO_MAX_B), least), 127);
}

/* A BDP and room for what offloads hold back: three bursts, and an even number, since receivers
 * acknowledge every second segment. */
static inline u64 bbr_budget(const struct bbr *s, const struct law_ack *ack, const struct law_control *control,
			     u64 bdp)
{
	u64 cwnd = (bdp + 3 * bbr_burst(ack, control) + 1) & ~1ULL;

	return s->mode == BBR_PROBE_BW && !s->cycle ? cwnd + 2 : cwnd;
}

/* Before any RTT, the initial window. */
static inline u64 bbr_bdp(const struct bbr *s, u64 bw, u32 gain)
{
	return s->min_rtt_us == ~0u ? BBR_INITIAL_CWND : rate_bdp(bw, s->min_rtt_us, gain);
}

/* Segments that gain times the largest rate keeps in flight. */
static inline u64 bbr_inflight(const struct bbr *s, const struct law_ack *ack, const struct law_control *control,
			       u32 gain)
{
	return bbr_budget(s, ack, control, bbr_bdp(s, s->bw.best[0].value, gain));
}

/* Of so many in flight, those that will be in the network at the earliest departure time: less what the path
 * delivers by then. A phase that fills the path counts the burst that leaves then. */
static inline u64 bbr_in_network(const struct bbr *s, const struct law_ack *ack, const struct law_control *control,
				 u64 inflight)
{
	u64 delivered = rate_segments(bbr_bw(s), ack->hold_us);

	if (bbr_pacing_gain(s) > RATE_GAIN_ONE)
		inflight += bbr_burst(ack, control);
	return inflight - law_min(delivered, inflight);
}

static inline void bbr_lt_restart(struct bbr *s, const struct law_rate *rate)
{
	s->lt_ms = s->delivered_ms;
	s->lt_delivered = (u32)rate->delivered;
	s->lt_lost = (u32)rate->lost;
	s->lt_rounds = 0;
}

static inline void bbr_lt_stop(struct bbr *s)
{
	s->lt_bw = 0;
	s->lt_use = 0;
	s->lt_sampling = 0;
	s->lt_rounds = 0;
}

static inline void bbr_next_phase(struct bbr *s, u64 now_ns)
{
	s->cycle = (s->cycle + 1) & (BBR_CYCLE - 1);
	s->cycle_us = bbr_us(now_ns);
}

/* PROBE_BW begins in any phase but that of 3/4. */
static inline void bbr_probe_bw(struct bbr *s, u64 now_ns)
{
	s->mode = BBR_PROBE_BW;
	s->cycle = (BBR_CYCLE - 1 - rate_draw(&s->random, BBR_CYCLE - 1)) & (BBR_CYCLE - 1);
	bbr_next_phase(s, now_ns);
}

/* A policer: two intervals in a row that lose a fifth or more at the same rate. */
static inline void bbr_lt_interval(struct bbr *s, const struct law_ack *ack, const struct law_rate *rate)
{
	u64 delivered = (u32)rate->delivered - s->lt_delivered, lost = (u32)rate->lost - s->lt_lost;
	u32 ms = s->delivered_ms - s->lt_ms;
	u64 bw, diff;

	if (!delivered || lost << 8 < BBR_LT_LOSS * delivered || !ms)
		return;
	bw = law_min(delivered * RATE_ONE / (ms * 1000ULL), RATE_MAX);
	diff = bw > s->lt_bw ? bw - s->lt_bw : s->lt_bw - bw;
	if (s->lt_bw && (diff * 8 <= s->lt_bw
			 || rate_pacing_Bps(diff, ack->mss_B, RATE_GAIN_ONE) <= BBR_LT_DIFF_BPS)) {
		s->lt_bw = (u32)((bw + s->lt_bw) / 2);
		s->lt_use = 1;
		s->lt_rounds = 0;
		return;
	}
	s->lt_bw = (u32)bw;
	bbr_lt_restart(s, rate);
}

static inline void bbr_watch_policer(struct bbr *s, const struct law_ack *ack, const struct law_rate *rate,
				     int lost, int round_start)
{
	if (s->lt_use) {
		if (s->mode == BBR_PROBE_BW && round_start && ++s->lt_rounds >= BBR_LT_USE_ROUNDS) {
			bbr_lt_stop(s);
			bbr_probe_bw(s, ack->now_ns);
		}
		return;
	}
	if (!s->lt_sampling) {
		if (!lost)
			return;
		bbr_lt_restart(s, rate);
		s->lt_sampling = 1;
	}
	if (rate->flags & LAW_RATE_APP_LIMITED) {
		bbr_lt_stop(s);
		return;
	}
	if (round_start)
		s->lt_rounds++;
	if (s->lt_rounds < BBR_LT_ROUNDS)
		return;
	if (s->lt_rounds > 4 * BBR_LT_ROUNDS)
		bbr_lt_stop(s);
	else if (lost)
		bbr_lt_interval(s, ack, rate);
}

/* A timeout ends a round trip that lost: the detector saw it before this ACK. */
static inline void bbr_watch_timeout(struct bbr *s, const struct law_ack *ack, const struct law_rate *rate)
{
	struct law_rate then = {
		.delivered = rate->delivered - ack->newly_delivered,
		.lost = rate->lost - ack->newly_lost,
	};

	s->timeout = 0;
	s->full_bw = 0;
	bbr_watch_policer(s, ack, &then, 1, 1);
}

/* Whether a round trip began. */
static inline int bbr_update_bw(struct bbr *s, const struct law_ack *ack, const struct law_rate *rate)
{
	int round_start = 0;
	u64 bw;

	if (!rate->interval_ns)
		return 0;
	if ((s32)((u32)rate->prior_delivered - s->round_end) >= 0) {
		s->round_end = (u32)rate->delivered;
		s->round++;
		s->conserve = 0;
		round_start = 1;
	}
	bbr_watch_policer(s, ack, rate, ack->newly_lost != 0, round_start);
	bw = rate_of(rate);
	if (!(rate->flags & LAW_RATE_APP_LIMITED) || bw >= s->bw.best[0].value)
		rate_max_add(&s->bw, BBR_BW_ROUNDS, s->round, (u32)bw);
	return round_start;
}

/* How much more than bw times the time was acknowledged, at most: ACKs that come in bursts. */
static inline void bbr_update_extra(struct bbr *s, const struct law_ack *ack, const struct law_rate *rate,
				    const struct law_control *control, int round_start)
{
	u64 expected, extra;

	if (!ack->newly_delivered || !rate->interval_ns)
		return;
	if (round_start) {
		s->extra_rounds = s->extra_rounds < 31 ? s->extra_rounds + 1 : 31;
		if (s->extra_rounds >= BBR_EXTRA_ROUNDS) {
			s->extra_rounds = 0;
			s->extra_old = s->extra_now;
			s->extra_now = 0;
		}
	}
	expected = rate_segments(bbr_bw(s), bbr_us(ack->now_ns) - s->epoch_us);
	if (s->epoch_acked <= expected || s->epoch_acked + (u64)ack->newly_delivered >= BBR_EXTRA_RESET) {
		s->epoch_acked = 0;
		s->epoch_us = bbr_us(ack->now_ns);
		expected = 0;
	}
	s->epoch_acked = (u32)law_min(s->epoch_acked + (u64)ack->newly_delivered, BBR_EXTRA_RESET - 1);
	extra = law_min(s->epoch_acked - law_min(expected, s->epoch_acked), control->cwnd >> 32);
	s->extra_now = (u32)law_max(s->extra_now, extra);
}

static inline u64 bbr_extra(const struct bbr *s)
{
	u64 extra = law_max(s->extra_now, s->extra_old);

	return s->full ? law_min(extra, rate_segments(bbr_bw(s), BBR_EXTRA_MAX_US)) : 0;
}

static inline void bbr_update_cycle(struct bbr *s, const struct law_ack *ack, const struct law_rate *rate,
				    const struct law_control *control)
{
	u64 inflight = bbr_in_network(s, ack, control, rate->prior_inflight);
	u32 gain = bbr_pacing_gain(s);
	int over = bbr_us(ack->now_ns) - s->cycle_us > s->min_rtt_us;

	if (s->mode != BBR_PROBE_BW)
		return;
	if (gain > RATE_GAIN_ONE)
		over = over && (ack->newly_lost || inflight >= bbr_inflight(s, ack, control, gain));
	else if (gain < RATE_GAIN_ONE)
		over = over || inflight <= bbr_inflight(s, ack, control, RATE_GAIN_ONE);
	if (over)
		bbr_next_phase(s, ack->now_ns);
}

static inline void bbr_check_full(struct bbr *s, const struct law_rate *rate, int round_start)
{
	u32 bw = s->bw.best[0].value;

	if (s->full || !round_start || rate->flags & LAW_RATE_APP_LIMITED)
		return;
	if (bw >= s->full_bw * 5ULL / 4) {
		s->full_bw = bw;
		s->full_rounds = 0;
	} else {
		s->full = ++s->full_rounds >= BBR_FULL_ROUNDS;
	}
}

static inline void bbr_check_drain(struct bbr *s, const struct law_ack *ack, const struct law_control *control)
{
	if (s->mode == BBR_STARTUP && s->full)
		s->mode = BBR_DRAIN;
	if (s->mode == BBR_DRAIN
	    && bbr_in_network(s, ack, control, ack->inflight) <= bbr_inflight(s, ack, control, RATE_GAIN_ONE))
		bbr_probe_bw(s, ack->now_ns);
}

static inline void bbr_save_cwnd(struct bbr *s, const struct law_control *control)
{
	u32 cwnd = (u32)(control->cwnd >> 32);

	if (s->state == BBR_OPEN && s->mode != BBR_PROBE_RTT)
		s->prior_cwnd = cwnd;
	else
		s->prior_cwnd = (u32)law_max(s->prior_cwnd, cwnd);
}

static inline void bbr_restore_cwnd(const struct bbr *s, struct law_control *control)
{
	control->cwnd = law_max(control->cwnd, LAW_SEG(s->prior_cwnd));
}

static inline void bbr_check_probe_rtt_done(struct bbr *s, u64 now_ns, struct law_control *control)
{
	u32 now_ms = bbr_ms(now_ns);

	if (!s->probe_rtt_done_ms || (s32)(now_ms - s->probe_rtt_done_ms) <= 0)
		return;
	s->min_rtt_ms = now_ms;
	bbr_restore_cwnd(s, control);
	if (s->full)
		bbr_probe_bw(s, now_ns);
	else
		s->mode = BBR_STARTUP;
}

/* Returns whether the samples of what leaves now are to be ignored. */
static inline u32 bbr_update_min_rtt(struct bbr *s, const struct law_ack *ack, struct law_control *control,
				     const struct law_rate *rate, int round_start)
{
	u32 now_ms = bbr_ms(ack->now_ns), rtt_us = (u32)law_clamp(ack->rtt_ns / 1000, 1, ~0u - 1), steer = 0;
	int expired = (s32)(now_ms - s->min_rtt_ms - BBR_MIN_RTT_MS) > 0;

	if (ack->rtt_ns && (rtt_us < s->min_rtt_us || expired)) {
		s->min_rtt_us = rtt_us;
		s->min_rtt_ms = now_ms;
	}
	if (expired && !s->idle_restart && s->mode != BBR_PROBE_RTT) {
		bbr_save_cwnd(s, control);
		s->mode = BBR_PROBE_RTT;
		s->probe_rtt_done_ms = 0;
	}
	if (s->mode == BBR_PROBE_RTT) {
		steer = LAW_CONTROL_APP_LIMITED;
		if (!s->probe_rtt_done_ms && ack->inflight <= BBR_MIN_CWND) {
			s->probe_rtt_done_ms = (u32)law_max(now_ms + BBR_PROBE_RTT_MS, 1);
			s->probe_rtt_round_done = 0;
			s->round_end = (u32)rate->delivered;
		} else if (s->probe_rtt_done_ms) {
			s->probe_rtt_round_done |= !!round_start;
			if (s->probe_rtt_round_done)
				bbr_check_probe_rtt_done(s, ack->now_ns, control);
		}
	}
	if (rate->interval_ns)
		s->idle_restart = 0;
	return steer;
}

static inline void bbr_pace(struct bbr *s, const struct law_ack *ack, struct law_control *control, u32 gain)
{
	u64 pacing_Bps;

	/* The handshake's RTT does not count. */
	if (!s->has_rtt && ack->srtt_ns && ack->newly_delivered) {
		u64 bw = (control->cwnd >> 32) * RATE_ONE / law_max(ack->srtt_ns / 1000, 1);

		s->has_rtt = 1;
		control->pacing_Bps = rate_pacing_Bps(bw, ack->mss_B, BBR_HIGH_GAIN);
	}
	pacing_Bps = rate_pacing_Bps(bbr_bw(s), ack->mss_B, gain);
	if (s->full || pacing_Bps > control->pacing_Bps)
		control->pacing_Bps = pacing_Bps;
}

/* The window through recovery, in segments; returns whether it is conserving packets: in the first
 * round trip of a recovery no more leave than arrived. */
static inline int bbr_recover(struct bbr *s, const struct law_ack *ack, const struct law_rate *rate, u64 *cwnd)
{
	u32 state = ack->flags & LAW_ACK_LOSS ? BBR_LOSS : ack->flags & LAW_ACK_RECOVERY ? BBR_RECOVERY : BBR_OPEN;

	if (ack->newly_lost)
		*cwnd = law_max(*cwnd, ack->newly_lost + 1ULL) - ack->newly_lost;
	if (state == BBR_RECOVERY && s->state != BBR_RECOVERY) {
		s->conserve = 1;
		s->round_end = (u32)rate->delivered;
		*cwnd = ack->inflight + (u64)ack->newly_delivered;
	} else if (state == BBR_OPEN && s->state != BBR_OPEN) {
		*cwnd = law_max(*cwnd, s->prior_cwnd);
		s->conserve = 0;
	}
	s->state = state & 3;
	if (s->conserve)
		*cwnd = law_max(*cwnd, ack->inflight + (u64)ack->newly_delivered);
	return s->conserve;
}

static inline void bbr_set_cwnd(struct bbr *s, const struct law_ack *ack, const struct law_rate *rate,
				struct law_control *control)
{
	u64 cwnd = control->cwnd >> 32, acked = ack->newly_delivered, target;
	u32 gain = s->mode == BBR_PROBE_BW ? BBR_CWND_GAIN : s->mode == BBR_PROBE_RTT ? RATE_GAIN_ONE : BBR_HIGH_GAIN;

	if (acked && !bbr_recover(s, ack, rate, &cwnd)) {
		target = bbr_budget(s, ack, control, bbr_bdp(s, bbr_bw(s), gain) + bbr_extra(s));
		if (s->full)
			cwnd = law_min(cwnd + acked, target);
		else if (cwnd < target || ack->delivered < BBR_INITIAL_CWND)
			cwnd += acked;
		cwnd = law_max(cwnd, BBR_MIN_CWND);
	}
	if (s->mode == BBR_PROBE_RTT)
		cwnd = law_min(cwnd, BBR_MIN_CWND);
	control->cwnd = LAW_SEG(law_clamp(cwnd, 1, LAW_MAX_CWND >> 32));
}

static inline void bbr_init(void *state, const struct law_config *config, struct law_control *control)
{
	struct bbr *s = state;
	u64 bw = (control->cwnd >> 32) * RATE_ONE / 1000;

	s->min_rtt_us = ~0u;
	s->min_rtt_ms = bbr_ms(config->now_ns);
	s->epoch_us = bbr_us(config->now_ns);
	s->delivered_ms = bbr_ms(config->now_ns);
	s->random = config->seed;
	/* As if the RTT were 1 ms, until there is one. */
	control->pacing_Bps = rate_pacing_Bps(bw, config->mss_B, BBR_HIGH_GAIN);
}

static inline u32 bbr_on_control(void *state, const struct law_ack *ack, const struct law_rate *rate,
				 struct law_control *control)
{
	struct bbr *s = state;
	int round_start;
	u32 steer;

	if (ack->flags & LAW_ACK_LOSS && s->state != BBR_LOSS) {
		s->state = BBR_LOSS;
		s->timeout = 1;
	}
	if (s->timeout)
		bbr_watch_timeout(s, ack, rate);
	if (ack->newly_delivered)
		s->delivered_ms = bbr_ms(ack->now_ns);
	round_start = bbr_update_bw(s, ack, rate);
	bbr_update_extra(s, ack, rate, control, round_start);
	bbr_update_cycle(s, ack, rate, control);
	bbr_check_full(s, rate, round_start);
	bbr_check_drain(s, ack, control);
	steer = bbr_update_min_rtt(s, ack, control, rate, round_start);
	bbr_pace(s, ack, control, bbr_pacing_gain(s));
	bbr_set_cwnd(s, ack, rate, control);
	return steer;
}

static inline void bbr_on_restart(void *state, u64 now_ns, struct law_control *control)
{
	struct bbr *s = state;

	s->idle_restart = 1;
	s->epoch_us = bbr_us(now_ns);
	s->epoch_acked = 0;
	if (s->mode == BBR_PROBE_BW)
		control->pacing_Bps = law_max(control->pacing_Bps * RATE_GAIN_ONE / bbr_pacing_gain(s), 1);
	else if (s->mode == BBR_PROBE_RTT)
		bbr_check_probe_rtt_done(s, now_ns, control);
}

static inline void bbr_on_loss(void *state, const struct law_loss *loss, struct law_control *control)
{
	struct bbr *s = state;

	bbr_save_cwnd(s, control);
	s->timeout |= loss->kind == LAW_LOSS_RTO;
}

static inline void bbr_on_undo(void *state, struct law_control *control)
{
	struct bbr *s = state;

	(void)control;
	s->full_bw = 0;
	s->full_rounds = 0;
	bbr_lt_stop(s);
}

static inline void bbr_probe(const void *state, const struct law_control *control, u64 *out)
{
	const struct bbr *s = state;

	(void)control;
	out[0] = s->mode;
	out[1] = bbr_pacing_gain(s);
	out[2] = bbr_bw(s);
	out[3] = s->min_rtt_us == ~0u ? 0 : s->min_rtt_us;
	out[4] = s->round;
	out[5] = bbr_extra(s);
	out[6] = s->lt_use;
}

LAW_CONTROL_OPS(bbr, .on_restart = bbr_on_restart, .on_undo = bbr_on_undo, .probe = bbr_probe);

#endif
