/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Westwood+ (Grieco & Mascolo, CCR 2004; Mascolo & Racanelli 2005 on 10 Gbit/s paths). Standard TCP
 * that, after a loss, sets its window to what it measured the path to hold: bwe * rtt_min.
 *
 *   plus   exact credit, Linux's filter, never raises the window at a loss
 *   paper  AckedCount, the filter 9/10, cwnd = ssthresh to the letter, upwards too
 *   linux  the module of Linux: recovery runs towards one half, and its end jumps to bwe * rtt_min
 *   ns2    the module of Linux 2.6.22 in ns-2: as linux, but rtt_min rounds down to a jiffy
 *   wns2   UCLA's module for ns-2: its repaired AckedCount, the filter 9/10, never raises
 *   2001   the first Westwood (Mascolo, Casetti, Gerla, Sanadidi, Wang, MobiCom 2001): a sample an ACK,
 *          filtered over 1 s, AckedCount, never raises
 */
#ifndef LFN_WESTWOOD_H
#define LFN_WESTWOOD_H

#include "bandwidth.h"

#define WESTWOOD_PLUS 0u
#define WESTWOOD_PAPER 1u
#define WESTWOOD_LINUX 2u
#define WESTWOOD_NS2 3u
#define WESTWOOD_WNS2 4u
#define WESTWOOD_2001 5u

struct westwood {
	struct bandwidth bandwidth;
	u32 rules;        /* BANDWIDTH_* */
	u32 cnt;          /* linux: segments acknowledged since cwnd last grew */
	u32 mss_B;
	u8 linux_rules;
	u8 may_raise;     /* the end of an episode sets cwnd, upwards too */
	u8 in_episode;    /* and is due: an episode without a timeout is under way */
	u8 pad;
};

static inline void westwood_init(void *state, const struct law_config *config, struct law_control *control)
{
	struct westwood *w = state;

	(void)control;
	bandwidth_init(&w->bandwidth, config->now_ns);
	w->mss_B = config->mss_B;
	w->linux_rules = config->variant == WESTWOOD_LINUX || config->variant == WESTWOOD_NS2;
	w->may_raise = w->linux_rules || config->variant == WESTWOOD_PAPER;
	if (w->linux_rules)
		w->rules = BANDWIDTH_CASCADE | BANDWIDTH_JIFFIES | BANDWIDTH_COUNT_PAPER |
			   (config->variant == WESTWOOD_NS2 ? BANDWIDTH_RTT_DOWN :
							      BANDWIDTH_FIRST_DATA | BANDWIDTH_SACKS |
								      BANDWIDTH_PREDICTED);
	else if (config->variant == WESTWOOD_PAPER)
		w->rules = BANDWIDTH_COUNT_PAPER;
	else if (config->variant == WESTWOOD_WNS2)
		w->rules = BANDWIDTH_COUNT_WNS2;
	else if (config->variant == WESTWOOD_2001)
		w->rules = BANDWIDTH_TUSTIN | BANDWIDTH_COUNT_PAPER;
	else
		w->rules = BANDWIDTH_CASCADE;
}

static inline void westwood_on_sample(void *state, const struct law_ack *ack, struct law_control *control)
{
	struct westwood *w = state;

	(void)control;
	bandwidth_on_sample(&w->bandwidth, ack, w->rules);
}

static inline void westwood_on_ack(void *state, u32 n, const struct law_ack *ack, struct law_control *control)
{
	struct westwood *w = state;

	(void)ack;
	if (w->linux_rules)
		law_add_every(control, &w->cnt, (u32)(control->cwnd >> 32), n);
	else
		law_add_per_rtt(control, 1 << 16, n);
}

/* bwe * rtt_min/mss; Linux in whole segments. */
static inline u64 westwood_window(const struct westwood *w)
{
	u64 window = bandwidth_window(&w->bandwidth, w->mss_B);

	return w->linux_rules ? window & ~(LAW_ONE - 1) : window;
}

static inline void westwood_on_loss(void *state, const struct law_loss *loss, struct law_control *control)
{
	struct westwood *w = state;
	u64 cwnd = law_max(control->cwnd, LAW_MIN_SSTHRESH), ssthresh;
	int timeout = loss->kind == LAW_LOSS_RTO;

	if (w->linux_rules && !timeout)
		ssthresh = LAW_SEG(cwnd >> 33); /* on_open decides */
	else if (!w->linux_rules && !w->bandwidth.bwe_Bps)
		ssthresh = cwnd / 2; /* nothing measured yet: as standard TCP */
	else
		ssthresh = westwood_window(w);
	if (timeout)
		w->bandwidth.renew_rtt_min = 1;
	else if (!w->may_raise)
		ssthresh = law_min(ssthresh, cwnd);
	w->in_episode = w->may_raise && !timeout;
	w->cnt = 0;
	control->ssthresh = law_max(ssthresh, LAW_MIN_SSTHRESH);
}

static inline void westwood_on_open(void *state, const struct law_ack *ack, struct law_control *control)
{
	struct westwood *w = state;

	if (w->in_episode) {
		/* Linux closes the estimator's window before the ACK ends the episode (measured). */
		if (w->rules & BANDWIDTH_FIRST_DATA)
			bandwidth_on_time(&w->bandwidth, ack, w->rules);
		if (w->linux_rules)
			control->ssthresh = law_max(westwood_window(w), LAW_MIN_SSTHRESH);
		control->cwnd = control->ssthresh;
	}
	w->in_episode = 0;
}

static inline void westwood_on_undo(void *state, struct law_control *control)
{
	struct westwood *w = state;

	(void)control;
	w->in_episode = 0;
}

static inline void westwood_probe(const void *state, const struct law_control *control, u64 *out)
{
	const struct westwood *w = state;

	(void)control;
	out[0] = w->bandwidth.bwe_Bps;
	out[1] = w->bandwidth.rtt_min_us;
	out[2] = w->bandwidth.segments;
}

LAW_OPS(westwood, .on_sample = westwood_on_sample, .on_open = westwood_on_open,
	.on_undo = westwood_on_undo, .probe = westwood_probe, .predicted = 1u << WESTWOOD_LINUX);

#endif
