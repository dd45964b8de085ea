/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* TCP Prague (draft-briscoe-iccrg-prague-congestion-control, text of July 2022): DCTCP for the Internet. The window falls by half of
 * the fraction of segments marked, once a round; it grows by the segments that are not marked, also while it falls; below
 * 25 ms it grows as if the RTT were 25 ms, and it leaves in the spacing of its pacing rate. A loss halves, as in Reno.
 *
 * `draft` begins with the cautious alpha of 1 at the first mark and becomes independent of the RTT 500 rounds after
 * slow start; `linux` (module version 0.7 of the L4S team) halves at the first mark with an alpha of 0, does so after 4
 * rounds, and halves at every loss. `additive` is `draft` with an RTT that is longer by 10 ms, the other form that RFC 9331
 * appendix A.1.6 names.
 *
 * `steady` is our own, and forgets fewer marks. A mark in a round that had a reduction asks for another at its end, where
 * the others wait for the next mark; and alpha is a mean over 8 rounds, not 16, since it falls in rounds without marks. It
 * begins as `linux`, with the RTT of `additive`.
 *
 * With the parameter `fallback` it looks for a Classic bottleneck, one that marks as RFC 3168 says (RFC 9331 section 4.3,
 * item 3), by the queue that marked packets waited in: in one for L4S they wait about 1 ms. In a Classic one marks and
 * losses cut the window and let it grow as CUBIC's (RFC 9438), and the RTT is the real one. B. Briscoe and A. Ahmed, "TCP
 * Prague Fall-back on Detection of a Classic ECN AQM", has the idea and the 2 ms; the rest is our own.
 */
#ifndef LFN_PRAGUE_H
#define LFN_PRAGUE_H

#include "cubic.h"

#define PRAGUE_DRAFT 0u
#define PRAGUE_LINUX 1u
#define PRAGUE_ADDITIVE 2u
#define PRAGUE_STEADY 3u
#define PRAGUE_G_SHIFT 4u            /* g = 1/16 */
#define PRAGUE_STEADY_G_SHIFT 3u     /* g = 1/8 */
#define PRAGUE_ONE_Q24 (1u << 24)    /* alpha of 1 */
#define PRAGUE_TARGET_NS 25000000ULL /* the RTT that shorter ones pretend to */
#define PRAGUE_MORE_NS 10000000ULL   /* additive */
#define PRAGUE_DRAFT_ROUNDS 500u     /* D */
#define PRAGUE_LINUX_ROUNDS 4u
#define PRAGUE_MIN_CWND LAW_SEG(2)
#define PRAGUE_DEEP_NS 2000000ULL /* a queue is deep if marked packets wait so long, */
#define PRAGUE_DEEP_PACKETS 4u    /* and as long as so many of the flow's packets take to leave */
#define PRAGUE_DEPTH_ONE (1u << 10)
#define PRAGUE_DEPTH_SHIFT 3u     /* a mean over 8 rounds with marks */
#define PRAGUE_SHALLOW (PRAGUE_DEPTH_ONE * 3 / 4)

struct prague {
	u64 sum_q24;      /* alpha/g: U of the draft */
	u64 delivered;    /* in the round under way */
	u64 marked;       /* of them, those with CE */
	u64 round_end;    /* the round under way ends when this much is delivered */
	u64 updated_ns;   /* alpha's last update */
	u64 cut_ns;       /* the last reduction for marks */
	u64 cut_end;      /* a round after it has ended when this much is delivered */
	u32 variant;
	u32 rounds;       /* since slow start ended */
	u32 seen;         /* a mark has been seen: the peers speak accurate ECN */
	u32 cwr;          /* no further reduction for marks */
	u32 again;        /* steady: a mark came since */
	u32 lost;         /* a loss has set ssthresh, and the window has not followed yet */
	struct cubic_curve curve; /* while Classic */
	u64 waited_ns;    /* fallback: sum of the queue delays at ACKs with marks in the round under way */
	u32 waits;        /* of so many */
	u32 depth_q10;    /* mean of these delays over what is deep, each at most 2 */
	u32 fallback;
	u32 classic;      /* the bottleneck marks as RFC 3168 */
};

/* As the module of the L4S team: alpha begins at 0, and independence of the RTT after 4 rounds. */
static inline int prague_begins_low(const struct prague *s)
{
	return s->variant == PRAGUE_LINUX || s->variant == PRAGUE_STEADY;
}

static inline u32 prague_g_shift(const struct prague *s)
{
	return s->variant == PRAGUE_STEADY ? PRAGUE_STEADY_G_SHIFT : PRAGUE_G_SHIFT;
}

static inline u64 prague_alpha_q24(const struct prague *s) { return s->sum_q24 >> prague_g_shift(s); }

static inline int prague_slow_starts(const struct law_control *control) { return control->cwnd < control->ssthresh; }

/* The window, or what is in flight if that is more, in a round trip; twice that early in slow start. */
static inline void prague_pace(struct law_control *control, u32 inflight, u32 mss_B, u64 srtt_ns)
{
	u64 window_q16 = law_max(control->cwnd >> 16, law_min((u64)inflight << 16, LAW_MAX_CWND >> 16));
	u64 bytes = (window_q16 * mss_B) >> 16;
	u64 rate = law_muldiv(bytes, 1000000000ULL, srtt_ns);

	control->pacing_Bps = law_max(control->cwnd < control->ssthresh / 2 ? 2 * rate : rate, 1);
}

static inline void prague_init(void *state, const struct law_config *config, struct law_control *control)
{
	struct prague *s = state;

	s->variant = config->variant;
	s->fallback = config->parameters[0] != 0;
	control->ssthresh = law_max(control->ssthresh, PRAGUE_MIN_CWND);
	prague_pace(control, 0, config->mss_B, config->srtt_ns ? config->srtt_ns : 1000000);
}

/* The RTT that growth and rounds pretend to have. Without marks the flow is Reno: no RTT independence. */
static inline u64 prague_virtual_ns(const struct prague *s, u64 srtt_ns)
{
	u32 after = prague_begins_low(s) ? PRAGUE_LINUX_ROUNDS : PRAGUE_DRAFT_ROUNDS;

	if (!s->seen || s->rounds < after || s->classic)
		return srtt_ns;
	if (s->variant == PRAGUE_ADDITIVE || s->variant == PRAGUE_STEADY)
		return srtt_ns + PRAGUE_MORE_NS;
	return law_max(srtt_ns, PRAGUE_TARGET_NS);
}

static inline void prague_see(struct prague *s, const struct law_ack *ack)
{
	if (!ack->ce || !ack->rtt_ns)
		return;
	s->waited_ns += ack->rtt_ns - law_min(ack->min_rtt_ns, ack->rtt_ns);
	s->waits++;
}

/* At the end of a round with marks: whether the queue that they come from is deep. */
static inline void prague_classify(struct prague *s, const struct law_ack *ack, const struct law_control *control)
{
	u64 packet_ns = ack->srtt_ns / law_max(control->cwnd >> 32, 1);
	u64 deep_ns = law_max(PRAGUE_DEEP_NS, PRAGUE_DEEP_PACKETS * packet_ns);
	u64 depth_q10;

	if (!s->fallback || !s->waits)
		return;
	depth_q10 = law_min((s->waited_ns / s->waits << 10) / deep_ns, 2 * PRAGUE_DEPTH_ONE);
	s->depth_q10 += ((u32)depth_q10 >> PRAGUE_DEPTH_SHIFT) - (s->depth_q10 >> PRAGUE_DEPTH_SHIFT);
	s->waited_ns = 0;
	s->waits = 0;
	if (!s->classic && s->depth_q10 > PRAGUE_DEPTH_ONE) {
		s->classic = 1;
		s->curve.last_ns = ack->now_ns;
		cubic_curve_end(&s->curve, control->cwnd, control->cwnd, LAW_LOSS_FAST);
	} else if (s->depth_q10 < PRAGUE_SHALLOW) {
		s->classic = 0;
	}
}

/* Once a round, and not sooner than the virtual RTT: alpha follows the fraction of marked segments. */
static inline void prague_end_round(struct prague *s, const struct law_ack *ack, const struct law_control *control)
{
	if (ack->delivered < s->round_end || ack->now_ns - s->updated_ns < prague_virtual_ns(s, ack->srtt_ns))
		return;
	if (s->seen && s->delivered)
		s->sum_q24 += ((s->marked << 24) / s->delivered) - prague_alpha_q24(s);
	prague_classify(s, ack, control);
	s->delivered = 0;
	s->marked = 0;
	s->round_end = ack->delivered + ack->inflight;
	s->updated_ns = ack->now_ns;
	if (!prague_slow_starts(control))
		s->rounds = (u32)law_min((u64)s->rounds + 1, ~0U);
}

/* A mark outside a round that already had a reduction; steady: the end of such a round with a mark, too. */
static inline void prague_cut(struct prague *s, const struct law_ack *ack, struct law_control *control)
{
	u64 alpha_q24;

	if (s->cwr && ack->delivered >= s->cut_end &&
	    ack->now_ns - s->cut_ns >= prague_virtual_ns(s, ack->srtt_ns))
		s->cwr = 0;
	if (s->cwr) {
		s->again |= ack->ce && s->variant == PRAGUE_STEADY;
		return;
	}
	if (!ack->ce && !s->again)
		return;
	s->again = 0;
	if (!s->seen && !prague_begins_low(s))
		s->sum_q24 = (u64)PRAGUE_ONE_Q24 << prague_g_shift(s);
	alpha_q24 = s->seen ? prague_alpha_q24(s) : PRAGUE_ONE_Q24;
	s->seen = 1;
	if (s->classic) {
		cubic_curve_end(&s->curve, control->cwnd, control->cwnd * 17 / 20, LAW_LOSS_FAST);
		control->cwnd = control->cwnd * 7 / 10;
	} else {
		control->cwnd -= (control->cwnd >> 25) * alpha_q24;
	}
	control->cwnd = law_max(control->cwnd, PRAGUE_MIN_CWND);
	control->ssthresh = control->cwnd;
	s->cwr = 1;
	s->cut_ns = ack->now_ns;
	s->cut_end = ack->delivered + ack->inflight;
}

/* Of segments that carry no mark; also in a round with a reduction, not while a loss is repaired. */
static inline void prague_grow(struct prague *s, const struct law_ack *ack, struct law_control *control)
{
	u32 n = ack->newly_delivered - (u32)law_min(ack->ce, ack->newly_delivered);
	u64 virtual_ns = prague_virtual_ns(s, ack->srtt_ns);
	u64 ratio_q16;

	if (ack->flags & LAW_ACK_RECOVERY || !(ack->flags & LAW_ACK_CWND_LIMITED))
		return;
	if (prague_slow_starts(control)) {
		control->cwnd = law_min(control->cwnd + LAW_SEG(n), LAW_MAX_CWND);
		return;
	}
	if (ack->flags & LAW_ACK_LOSS)
		return;
	if (s->classic) {
		cubic_curve_grow(&s->curve, CUBIC_ALPHA_RFC, ack->newly_delivered, ack, control);
		return;
	}
	/* 1/M^2 of a segment a round (RFC 9331 section 4.3, item 4). */
	ratio_q16 = (ack->srtt_ns << 16) / law_max(virtual_ns, 1);
	law_add_per_rtt(control, (ratio_q16 * ratio_q16) >> 16, n);
}

static inline u32 prague_on_control(void *state, const struct law_ack *ack, const struct law_rate *rate,
				    struct law_control *control)
{
	struct prague *s = state;

	(void)rate;
	if (s->lost)
		control->cwnd = law_min(control->cwnd, control->ssthresh);
	s->lost = 0;
	s->delivered += ack->newly_delivered;
	s->marked += law_min(ack->ce, ack->newly_delivered);
	if (s->fallback)
		prague_see(s, ack);
	if (s->classic)
		cubic_curve_on_sample(&s->curve, ack->now_ns, ack->flags);
	prague_end_round(s, ack, control);
	prague_cut(s, ack, control);
	prague_grow(s, ack, control);
	if (ack->srtt_ns)
		prague_pace(control, ack->inflight, ack->mss_B, ack->srtt_ns);
	return 0;
}

/* A loss halves. Of one less than a round after a reduction for marks the draft lets both together halve. */
static inline void prague_on_loss(void *state, const struct law_loss *loss, struct law_control *control)
{
	struct prague *s = state;
	u64 w = control->cwnd >> 1;

	if (loss->kind == LAW_LOSS_ECN)
		return;
	if (s->classic) {
		cubic_curve_end(&s->curve, control->cwnd, control->cwnd * 17 / 20, loss->kind);
		w = control->cwnd * 7 / 10;
	} else if (s->cwr && s->variant != PRAGUE_LINUX) {
		w = law_muldiv(control->cwnd >> 16, PRAGUE_ONE_Q24, 2 * PRAGUE_ONE_Q24 - prague_alpha_q24(s)) << 16;
	}
	control->ssthresh = law_max(w, PRAGUE_MIN_CWND);
	s->lost = 1;
}

static inline void prague_on_undo(void *state, struct law_control *control)
{
	struct prague *s = state;

	(void)control;
	s->lost = 0;
	if (s->classic)
		cubic_curve_undo(&s->curve);
}

static inline void prague_probe(const void *state, const struct law_control *control, u64 *out)
{
	const struct prague *s = state;

	(void)control;
	out[0] = prague_alpha_q24(s);
	out[1] = s->rounds;
	out[2] = s->cwr;
	out[3] = s->depth_q10;
	out[4] = s->classic;
}

LAW_CONTROL_OPS(prague, .on_undo = prague_on_undo, .probe = prague_probe);

#endif
