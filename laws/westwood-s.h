/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Westwood+ with Scalable-style probing (Mascolo & Racanelli, PFLDnet 2005, "westwood+s"): the estimate
 * and the decrease of Westwood+ (westwood.h); the increase proportional to the window from 100
 * segments on, by 4 % a round trip. Variants are those of Westwood+ with the same names; linux counts
 * in whole segments, one for every 25.
 */
#ifndef LFN_WESTWOOD_S_H
#define LFN_WESTWOOD_S_H

#include "westwood.h"

#define WESTWOOD_S_THRESHOLD LAW_SEG(100) /* from here on */
#define WESTWOOD_S_INC (LAW_ONE / 25)     /* gamma = 0.04 a segment */

struct westwood_s {
	struct westwood westwood;
};

static inline void westwood_s_init(void *state, const struct law_config *config, struct law_control *control)
{
	westwood_init(state, config, control);
}

static inline void westwood_s_on_ack(void *state, u32 n, const struct law_ack *ack, struct law_control *control)
{
	struct westwood *w = state;

	if (control->cwnd < WESTWOOD_S_THRESHOLD)
		westwood_on_ack(state, n, ack, control);
	else if (w->linux_rules)
		law_add_every(control, &w->cnt, 25, n);
	else
		control->cwnd = law_min(control->cwnd + WESTWOOD_S_INC * n, LAW_MAX_CWND);
}

static inline void westwood_s_on_loss(void *state, const struct law_loss *loss, struct law_control *control)
{
	westwood_on_loss(state, loss, control);
}

LAW_OPS(westwood_s, .on_sample = westwood_on_sample, .on_open = westwood_on_open,
	.on_undo = westwood_on_undo, .probe = westwood_probe, .predicted = 1u << WESTWOOD_LINUX);

#endif
