/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* HTCP-BE ("HTCP with bandwidth estimation for e-VLBI data transport"): the increase of H-TCP
 * (htcp_alpha.h) and the decrease of Westwood+ (bandwidth.h). The card has the
 * open points of the paper.
 *
 *   paper    the increase is abar itself; a loss never raises the window
 *   literal  cwnd = ssthresh to the letter, upwards too
 *   scaled   the increase is 2(1 - beta_eff) abar, beta_eff = what was kept, within [0.5, 0.8]
 *   floor    a loss keeps at least one half
 *   hold     a loss costs nothing while fewer than one segment in 1000 is lost
 */
#ifndef LFN_HTCP_BE_H
#define LFN_HTCP_BE_H

#include "bandwidth.h"
#include "htcp_alpha.h"

#define HTCP_BE_LITERAL 1u
#define HTCP_BE_SCALED 2u
#define HTCP_BE_FLOOR 3u
#define HTCP_BE_HOLD 4u
#define HTCP_BE_RULES 0u /* exact credit, filter 9/10 (paper of Westwood+) */

/* hold: a bucket that a lost segment fills by 1000 and a delivered one empties by one; losses are
 * heavy when it holds more than 16 lost segments, and a full bucket forgets in twice that. */
#define HTCP_BE_LOST 1000u
#define HTCP_BE_HEAVY (16u * HTCP_BE_LOST)

struct htcp_be {
	struct htcp_clock clock;
	struct bandwidth bandwidth;
	u32 losses;    /* hold: the bucket */
	u8 variant;
	u8 in_episode; /* literal, hold: its end sets cwnd */
	u8 pad[2];
};

static inline void htcp_be_init(void *state, const struct law_config *config, struct law_control *control)
{
	struct htcp_be *h = state;

	(void)control;
	h->variant = (u8)config->variant;
	bandwidth_init(&h->bandwidth, config->now_ns);
	htcp_clock_start(&h->clock, config->now_ns, 1024);
}

static inline void htcp_be_on_sample(void *state, const struct law_ack *ack, struct law_control *control)
{
	struct htcp_be *h = state;

	(void)control;
	bandwidth_on_sample(&h->bandwidth, ack, HTCP_BE_RULES);
	if (h->variant == HTCP_BE_HOLD) {
		u64 losses = h->losses + (u64)ack->newly_lost * HTCP_BE_LOST;

		h->losses = (u32)law_min(losses - law_min(losses, ack->newly_delivered), 2 * HTCP_BE_HEAVY);
	}
}

/* Eq. (17) with alpha of eq. (12). */
static inline void htcp_be_on_ack(void *state, u32 n, const struct law_ack *ack, struct law_control *control)
{
	struct htcp_be *h = state;

	law_add_per_rtt(control, htcp_clock_gain_q16(&h->clock, ack->now_ns), n);
}

/* hold: neither cwnd nor D change. Not in slow start, whose first losses are always many, nor for a
 * timeout or a mark. */
static inline int htcp_be_holds(const struct htcp_be *h, const struct law_loss *loss,
				const struct law_control *control)
{
	return h->variant == HTCP_BE_HOLD && loss->kind == LAW_LOSS_FAST && h->losses <= HTCP_BE_HEAVY &&
	       control->cwnd >= control->ssthresh;
}

/* bwe rtt_min, or half while nothing is measured, as standard TCP. */
static inline u64 htcp_be_window(const struct htcp_be *h, u64 cwnd, u32 mss_B)
{
	return h->bandwidth.bwe_Bps ? bandwidth_window(&h->bandwidth, mss_B) : cwnd / 2;
}

/* Eq. (18) with the units of eq. (9); eq. (11) after a timeout, where the sender starts from 1. */
static inline void htcp_be_on_loss(void *state, const struct law_loss *loss, struct law_control *control)
{
	struct htcp_be *h = state;
	u64 cwnd = law_max(control->cwnd, LAW_MIN_SSTHRESH);
	u64 ssthresh = htcp_be_window(h, cwnd, loss->mss_B);
	u32 share_q10 = 1024;

	if (htcp_be_holds(h, loss, control)) {
		h->in_episode = 1;
		h->clock.undo_event_ns = h->clock.event_ns;
		control->ssthresh = cwnd;
		return;
	}
	h->losses = 0; /* the cut answers them */
	if (h->variant == HTCP_BE_FLOOR)
		ssthresh = law_max(ssthresh, cwnd / 2);
	if (h->variant == HTCP_BE_SCALED)
		share_q10 = 2048 - 2 * (u32)law_clamp(ssthresh / (cwnd >> 10), 512, 819);
	if (h->variant != HTCP_BE_LITERAL && loss->kind != LAW_LOSS_RTO)
		ssthresh = law_min(ssthresh, cwnd);
	h->in_episode = h->variant == HTCP_BE_LITERAL && loss->kind != LAW_LOSS_RTO;
	if (loss->kind == LAW_LOSS_RTO)
		h->bandwidth.renew_rtt_min = 1;
	htcp_clock_on_loss(&h->clock, loss->now_ns, share_q10);
	control->ssthresh = law_max(ssthresh, LAW_MIN_SSTHRESH);
}

static inline void htcp_be_on_open(void *state, const struct law_ack *ack, struct law_control *control)
{
	struct htcp_be *h = state;

	if (h->in_episode && h->variant == HTCP_BE_HOLD && h->losses > HTCP_BE_HEAVY) {
		/* More was lost since than can be held against. */
		u64 window = law_min(htcp_be_window(h, control->ssthresh, ack->mss_B), control->ssthresh);

		control->ssthresh = law_max(window, LAW_MIN_SSTHRESH);
		htcp_clock_on_loss(&h->clock, ack->now_ns, 1024);
		h->losses = 0;
	}
	if (h->in_episode)
		control->cwnd = control->ssthresh;
	h->in_episode = 0;
}

static inline void htcp_be_on_undo(void *state, struct law_control *control)
{
	struct htcp_be *h = state;

	(void)control;
	htcp_clock_undo(&h->clock);
	h->in_episode = 0;
}

static inline void htcp_be_probe(const void *state, const struct law_control *control, u64 *out)
{
	const struct htcp_be *h = state;

	(void)control;
	out[0] = h->clock.gain_q16;
	out[1] = h->bandwidth.bwe_Bps;
	out[2] = h->bandwidth.rtt_min_us;
}

LAW_OPS(htcp_be, .on_sample = htcp_be_on_sample, .on_open = htcp_be_on_open,
	.on_undo = htcp_be_on_undo, .probe = htcp_be_probe);

#endif
