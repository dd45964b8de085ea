/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* HighSpeed TCP: RFC 3649. An AIMD whose increase a(w) grows and whose decrease b(w) shrinks with
 * the window, so that the mean window is 0.12/p^0.835 for a loss-event rate p below 1e-3.
 *
 * b(w) is linear in log w, and a(w) = w^2 p(w) 2b(w)/(2 - b(w)) where p(w) = C w^e is the response
 * function turned round. The variants differ in p(w):
 *   loglog  the line through (38, 1e-3) and (83000, 1e-7) of RFC 3649 section 5
 *   rfc     p = 1/(12.8 w^1.2), the rounding that made the RFC's table
 *   ns2     the line through (38, 1.5/38^2) and (83000, 1e-7) as in ns-2, and its habit of halving
 *           at the first decrease, in slow start and after a timeout
 *   linux   the RFC's table, looked up and rounded as Linux does, one step an ACK
 *   converge  loglog, and a flow whose window keeps falling from event to event gives up half: it has
 *             more than its share (after Nabeshima & Yata, ICON 2004)
 * Logarithm and power are tables of 64 chords an octave; the card bounds their error.
 */
#ifndef LFN_HSTCP_H
#define LFN_HSTCP_H

#include "law.h"

#define HSTCP_LOGLOG 0u
#define HSTCP_RFC 1u
#define HSTCP_LINUX 2u
#define HSTCP_NS2 3u
#define HSTCP_CONVERGE 4u

#define HSTCP_LOW_WINDOW LAW_SEG(38) /* at and below it, Reno */
#define HSTCP_ONE (1u << 24) /* Q24 */

/* log2(1 + i/64), Q24. */
static const u32 hstcp_log2_table[65] = {
	0, 375270, 744810, 1108793, 1467383, 1820738, 2169009, 2512340, 2850868, 3184728, 3514044,
	3838941, 4159533, 4475935, 4788255, 5096595, 5401057, 5701737, 5998727, 6292118, 6581994, 6868440,
	7151536, 7431359, 7707984, 7981483, 8251926, 8519380, 8783912, 9045584, 9304457, 9560591, 9814042,
	10064867, 10313120, 10558852, 10802114, 11042956, 11281425, 11517568, 11751428, 11983051, 12212479, 12439752,
	12664911, 12887994, 13109041, 13328087, 13545168, 13760320, 13973576, 14184969, 14394532, 14602297, 14808293,
	15012551, 15215099, 15415967, 15615181, 15812769, 16008758, 16203172, 16396036, 16587377, 16777216,
};

/* 2^(-i/64), Q31. */
static const u32 hstcp_exp2_table[65] = {
	2147483648, 2124350982, 2101467502, 2078830522, 2056437387, 2034285470, 2012372174, 1990694927, 1969251188,
	1948038440, 1927054196, 1906295993, 1885761398, 1865448001, 1845353420, 1825475297, 1805811301, 1786359126,
	1767116489, 1748081133, 1729250827, 1710623359, 1692196547, 1673968228, 1655936265, 1638098541, 1620452965,
	1602997467, 1585730000, 1568648537, 1551751076, 1535035634, 1518500250, 1502142985, 1485961921, 1469955159,
	1454120821, 1438457051, 1422962010, 1407633882, 1392470869, 1377471191, 1362633090, 1347954824, 1333434672,
	1319070932, 1304861917, 1290805962, 1276901417, 1263146652, 1249540052, 1236080024, 1222764986, 1209593378,
	1196563654, 1183674286, 1170923762, 1158310587, 1145833280, 1133490379, 1121280436, 1109202018, 1097253708,
	1085434106, 1073741824,
};

/* a(w)/w = 2^-(c + e log2 w) 2b/(2 - b), Q24, by variant; linux has no formula. */
static const u32 hstcp_c[5] = { 61731990, 61707807, 0, 60375376, 61731990 };
static const u32 hstcp_e[5] = { 3319503, 3355443, 0, 3402523, 3319503 };

/* b(w) = 0.5 - 0.4 log(w/38)/log(83000/38) = HSTCP_B0 - HSTCP_B1 log2 w, Q24. It would reach 0 at
 * 567,416 segments; we hold it at 0.05, which it passes at 217,015 (RFC 3649 is silent there). */
#define HSTCP_B0 11563455u
#define HSTCP_B1 604972u
#define HSTCP_B_MIN (HSTCP_ONE / 20)

/* RFC 3649 appendix B, the rows that Linux has: largest window of the row, and 256 b rounded
 * down. Row i increases by i + 1 segments a round trip. */
#define HSTCP_ROWS 72
static const u32 hstcp_row_cwnd[HSTCP_ROWS] = {
	38, 118, 221, 347, 495, 663, 851, 1058, 1284, 1529, 1793, 2076,
	2378, 2699, 3039, 3399, 3778, 4177, 4596, 5036, 5497, 5979, 6483, 7009,
	7558, 8130, 8726, 9346, 9991, 10661, 11358, 12082, 12834, 13614, 14424, 15265,
	16137, 17042, 17981, 18955, 19965, 21013, 22101, 23230, 24402, 25618, 26881, 28193,
	29557, 30975, 32450, 33986, 35586, 37253, 38992, 40808, 42707, 44694, 46776, 48961,
	51258, 53677, 56230, 58932, 61799, 64851, 68113, 71617, 75401, 79517, 84035, 89053,
};
static const u8 hstcp_row_md[HSTCP_ROWS] = {
	128, 112, 104, 98, 93, 89, 86, 83, 81, 78, 76, 74, 72, 71, 69, 68, 66, 65,
	64, 62, 61, 60, 59, 58, 57, 56, 55, 54, 53, 52, 52, 51, 50, 49, 48, 48,
	47, 46, 45, 45, 44, 43, 43, 42, 41, 41, 40, 39, 39, 38, 38, 37, 36, 36,
	35, 35, 34, 33, 33, 32, 32, 31, 30, 30, 29, 28, 28, 27, 26, 26, 25, 24,
};

struct hstcp {
	u64 at;  /* window for which inc holds */
	u64 inc; /* a(w)/w, Q32 segments a segment */
	u32 variant;
	u32 row;  /* linux: row of the table */
	u32 cnt;  /* linux: ACKed increase towards the next segment */
	u32 half; /* ns2: the next decrease is by a half */
	/* converge: the windows that earlier events found */
	u64 w_prev; /* at the last one; 0: the trend restarts */
	u64 w_max;  /* where the downward trend began */
	u32 falls;  /* events in a row that found less than the one before */
	u32 pad;
};

/* converge: a trend is this many falls, and at least a 32nd of the window (EVCP's rules, which took
 * the idea from Nabeshima & Yata; their own numbers are not known to us). */
#define HSTCP_FALLS 2u
#define HSTCP_FALLS_MAX 10u /* a trend this slow does not count: it restarts */

/* log2 of a Q32.32 window of at least 1 segment, Q24; low by at most 4.5e-5. */
static inline u64 hstcp_log2(u64 w)
{
	u32 zeros = law_clz(w | LAW_ONE);
	u64 m = w << zeros;
	u32 i = (u32)(m >> 57) & 63;
	u64 rest = (m >> 33) & (HSTCP_ONE - 1);
	u64 low = hstcp_log2_table[i];

	return (u64)(31 - zeros) * HSTCP_ONE + low + ((hstcp_log2_table[i + 1] - low) * rest >> 24);
}

/* 2^-x of a Q24 x below 32, Q31; high by at most 1.5e-5 of itself. */
static inline u64 hstcp_exp2(u64 x)
{
	u32 i = (u32)(x >> 18) & 63;
	u64 rest = x & ((1 << 18) - 1);
	u64 high = hstcp_exp2_table[i];

	return (high - ((high - hstcp_exp2_table[i + 1]) * rest >> 18)) >> (x >> 24 & 31);
}

/* b(w), Q24. */
static inline u64 hstcp_b(u64 w)
{
	u64 fall = law_min(HSTCP_B1 * hstcp_log2(w) >> 24, HSTCP_B0);

	return law_clamp(HSTCP_B0 - fall, HSTCP_B_MIN, HSTCP_ONE / 2);
}

/* max(1, a(w))/w, Q32. */
static inline u64 hstcp_inc(u32 variant, u64 w)
{
	u64 b = hstcp_b(w), reno = (LAW_ONE << 16) / law_max(w >> 16, 1), x;

	if (w <= HSTCP_LOW_WINDOW)
		return law_min(reno, LAW_ONE);
	variant = variant < 5 ? variant : 0; /* in bounds where a verifier can see it */
	x = hstcp_c[variant] + (hstcp_e[variant] * hstcp_log2(w) >> 24);
	return law_max((hstcp_exp2(x) << 1) * (2 * b) / (2 * HSTCP_ONE - b), reno);
}

static inline void hstcp_init(void *state, const struct law_config *config, struct law_control *control)
{
	struct hstcp *s = state;

	(void)control;
	s->variant = config->variant;
	s->half = config->variant == HSTCP_NS2;
}

/* The row, in bounds where a verifier can see it. */
static inline u32 hstcp_row(const struct hstcp *s)
{
	return s->row < HSTCP_ROWS ? s->row : HSTCP_ROWS - 1;
}

/* The first row whose window is not below w; at most the last row. */
static inline u32 hstcp_find_row(u64 w)
{
	u32 row = 0, step;

	for (step = 64; step; step >>= 1) {
		u32 i = (u32)law_min(row + step - 1, HSTCP_ROWS - 2);

		row += (i + 1 - row) & (u32)law_mask_le(hstcp_row_cwnd[i] + 1ULL, w);
	}
	return row;
}

/* Linux counts ACKs, not segments. */
static inline void hstcp_linux_on_ack(struct hstcp *s, struct law_control *control)
{
	u32 w = (u32)(control->cwnd >> 32), row = hstcp_row(s);

	/* Not &&: Linux 6.1's verifier does not see that row - 1 is in bounds behind a branch on row. */
	if (w > hstcp_row_cwnd[row] || ((row > 0) & (w <= hstcp_row_cwnd[law_max(row, 1) - 1])))
		row = hstcp_find_row(w);
	s->row = row;
	s->cnt += row + 1;
	if (s->cnt >= w) {
		s->cnt -= w;
		control->cwnd = law_min(control->cwnd + LAW_ONE, LAW_MAX_CWND);
	}
}

static inline void hstcp_on_ack(void *state, u32 n, const struct law_ack *ack, struct law_control *control)
{
	struct hstcp *s = state;

	(void)ack;
	if (s->variant == HSTCP_LINUX) {
		hstcp_linux_on_ack(s, control);
		return;
	}
	/* a(w)/w changes slowly: hold it while the window is within 2^-12 of where it was made. */
	if (control->cwnd - s->at > s->at >> 12) {
		s->at = control->cwnd;
		s->inc = hstcp_inc(s->variant, s->at);
	}
	control->cwnd = law_min(control->cwnd + s->inc * n, LAW_MAX_CWND);
}

/* Whether this event ends a downward trend, which then restarts. */
static inline int hstcp_has_too_much(struct hstcp *s, u64 w)
{
	if (w <= HSTCP_LOW_WINDOW || w >= s->w_prev) {
		s->w_max = w;
		s->falls = 0;
	} else if (++s->falls >= HSTCP_FALLS && s->w_max - w >= s->w_max >> 5) {
		s->w_prev = 0;
		return 1;
	} else if (s->falls >= HSTCP_FALLS_MAX) {
		s->w_max = w;
		s->falls = 0;
	}
	s->w_prev = w;
	return 0;
}

static inline void hstcp_on_loss(void *state, const struct law_loss *loss, struct law_control *control)
{
	struct hstcp *s = state;
	u64 w = control->cwnd, cut;

	if (s->variant == HSTCP_LINUX) {
		w &= ~(LAW_ONE - 1);
		cut = (w >> 32) * hstcp_row_md[hstcp_row(s)] >> 8 << 32;
		s->cnt = 0;
	} else if (s->half || (s->variant == HSTCP_NS2 && w < control->ssthresh)) {
		cut = w >> 1;
	} else if (s->variant == HSTCP_CONVERGE && hstcp_has_too_much(s, w)) {
		cut = w >> 1;
	} else {
		cut = (w >> 18) * hstcp_b(w) >> 6;
	}
	s->half = s->variant == HSTCP_NS2 && loss->kind == LAW_LOSS_RTO;
	control->ssthresh = law_max(w - cut, LAW_MIN_SSTHRESH);
}

/* a and b at the present window, Q16. */
static inline void hstcp_probe(const void *state, const struct law_control *control, u64 *out)
{
	const struct hstcp *s = state;

	if (s->variant == HSTCP_LINUX) {
		out[0] = (s->row + 1) << 16;
		out[1] = (u64)hstcp_row_md[hstcp_row(s)] << 8;
	} else {
		out[0] = hstcp_inc(s->variant, control->cwnd) * (control->cwnd >> 16) >> 32;
		out[1] = hstcp_b(control->cwnd) >> 8;
	}
}

LAW_OPS(hstcp, .probe = hstcp_probe);

#endif
