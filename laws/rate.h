/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Delivery rates, as the laws that use them count: segments per microsecond in Q24. Linux's fixed
 * point (one segment of 1448 bytes in 2^24 us is 0.69 kbit/s), so that its roundings can be met.
 */
#ifndef LFN_RATE_H
#define LFN_RATE_H

#include "law.h"

#define RATE_ONE (1ULL << 24)  /* a segment per microsecond */
#define RATE_MAX 0xffffffffULL /* 256 of them: 3 Tbit/s of 1500-byte packets */
#define RATE_GAIN_ONE 256u     /* gains are Q8 */

/* The rate of a sample; 0: there is none. */
static inline u64 rate_of(const struct law_rate *rate)
{
	u64 n = law_min(rate->delivered - rate->prior_delivered, LAW_MAX_CWND >> 32);

	if (!rate->interval_ns)
		return 0;
	return law_min(n * RATE_ONE / law_max(rate->interval_ns / 1000, 1), RATE_MAX);
}

/* Segments that pass in time_us, in whole ones. */
static inline u64 rate_segments(u64 rate, u64 time_us)
{
	return law_min(law_min(rate, RATE_MAX) * law_min(time_us, 0xffffffff) / RATE_ONE, LAW_MAX_CWND >> 32);
}

/* gain times the bandwidth-delay product, in segments, rounded up as Linux does. */
static inline u64 rate_bdp(u64 rate, u32 rtt_us, u64 gain_q8)
{
	u64 bdp = law_min(law_min(rate, RATE_MAX) * rtt_us, RATE_ONE * (LAW_MAX_CWND >> 32));

	return law_min((bdp * gain_q8 / RATE_GAIN_ONE + RATE_ONE - 1) / RATE_ONE, LAW_MAX_CWND >> 32);
}

/* gain times a rate in bytes/s, less the margin of 1 % by which BBR stays below the bottleneck. */
static inline u64 rate_pacing_Bps(u64 rate, u32 mss_B, u64 gain_q8)
{
	u64 bytes = law_min(rate, RATE_MAX) * mss_B * gain_q8 / RATE_GAIN_ONE; /* per us, Q24: below 2^52 */

	if (bytes >> 44) /* times 990000, it does not fit into 64 bits */
		return (bytes >> 8) * 990000 >> 16;
	return law_max(bytes * 990000 / RATE_ONE, 1);
}

/* Segments that leave at once at a pacing rate: those of a millisecond, at most what fits in most_B. */
static inline u64 rate_quantum(u64 pacing_Bps, u32 mss_B, u64 most_B)
{
	return law_min(pacing_Bps >> 10, most_B) / law_max(mss_B, 1);
}

/* The largest of the last so many rounds, by the three best of three parts of them (K. Nichols'
 * windowed filter, as in Linux): best first, in order of age. */
struct rate_max {
	struct rate_best {
		u32 round;
		u32 value;
	} best[3];
};

static inline u32 rate_max_add(struct rate_max *m, u32 window, u32 round, u32 value)
{
	struct rate_best new = { round, value };
	u32 age;

	if (value >= m->best[0].value || round - m->best[2].round > window) {
		m->best[0] = m->best[1] = m->best[2] = new;
		return value;
	}
	if (value >= m->best[1].value)
		m->best[1] = m->best[2] = new;
	else if (value >= m->best[2].value)
		m->best[2] = new;
	age = round - m->best[0].round;
	if (age > window) {
		m->best[0] = m->best[1];
		m->best[1] = m->best[2];
		m->best[2] = new;
		if (round - m->best[0].round > window) {
			m->best[0] = m->best[1];
			m->best[1] = m->best[2];
		}
	} else if (m->best[1].round == m->best[0].round && age > window / 4) {
		m->best[1] = m->best[2] = new;
	} else if (m->best[2].round == m->best[1].round && age > window / 2) {
		m->best[2] = new;
	}
	return m->best[0].value;
}

/* A number below n, of a linear congruential sequence (Numerical Recipes' constants). */
static inline u32 rate_draw(u32 *random, u32 n)
{
	*random = *random * 1664525u + 1013904223u;
	return (*random >> 16) * n >> 16;
}

#endif
