/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* TCP Hybla (Caini & Firrincieli, Int. J. Satellite Communications and Networking 22(5), 2004): a long
 * path must not be slower than one of RTT_0 = 25 ms. With rho = RTT/RTT_0 the window grows rho^2
 * times as fast as Reno's a round trip, so that the rate grows as that of the short path.
 *
 *   paper  counts segments; the window to 2^-32 of a segment
 *   linux  counts ACKs, in 128ths of a segment, rounded down; begins with rho segments and stops at
 *          65,535; Reno in states Disorder and Loss (measured on Linux 6.12)
 */
#ifndef LFN_HYBLA_H
#define LFN_HYBLA_H

#include "law.h"

#define HYBLA_LINUX 1u
#define HYBLA_RTT0_NS 25000000ULL
#define HYBLA_RHO_MAX_Q16 (16u << 16) /* 2^rho in slow start (Linux) */
#define HYBLA_CENT 128u
#define HYBLA_LINUX_MAX LAW_SEG(65535)
/* 128 * 2^(k/8) in byte k: 128, 139, 152, 165, 181, 197, 215, 234. */
#define HYBLA_LINUX_EXP2 0xead7c5b5a5988b80ULL

struct hybla {
	u64 min_srtt_ns; /* for which rho holds; 0: no sample yet */
	u32 rho_q16;
	u32 cents; /* linux: 128ths of a segment towards the next one */
	u32 cnt;   /* linux: ACKs since cwnd last grew; where one is worth less than a 128th they decide, and for Reno */
	u32 variant;
};

/* 2^rho, Q16. The fraction by a parabola: within 0.3 %; linux: of eighths, in 128ths rounded down (measured). */
static inline u64 hybla_exp2_q16(const struct hybla *s)
{
	u32 rho = (u32)law_min(s->rho_q16, HYBLA_RHO_MAX_Q16), f = rho & 0xffff;
	u64 fraction = ((22269ULL * f >> 16) + 43267) * f >> 16;

	if (s->variant == HYBLA_LINUX)
		fraction = ((HYBLA_LINUX_EXP2 >> (f >> 13) * 8 & 0xff) << 9) - (1 << 16);
	return ((1 << 16) + fraction) << (rho >> 16);
}

static inline void hybla_take_rtt(struct hybla *s, u64 srtt_ns)
{
	if (!srtt_ns || (s->min_srtt_ns && srtt_ns >= s->min_srtt_ns))
		return;
	s->min_srtt_ns = srtt_ns;
	s->rho_q16 = (u32)law_clamp((law_min(srtt_ns, 1ULL << 43) << 16) / HYBLA_RTT0_NS, 1 << 16,
				    255 << 16);
	if (s->variant == HYBLA_LINUX)
		s->rho_q16 &= ~0x1fffu; /* eighths */
}

static inline void hybla_init(void *state, const struct law_config *config, struct law_control *control)
{
	struct hybla *s = state;

	s->variant = config->variant;
	s->rho_q16 = 1 << 16;
	hybla_take_rtt(s, config->srtt_ns);
	if (s->variant == HYBLA_LINUX && config->srtt_ns)
		control->cwnd = LAW_SEG(s->rho_q16 >> 16);
}

/* In slow start each segment (linux: each ACK) brings 2^rho - 1; the sender's brings one a segment. */
static inline void hybla_on_sample(void *state, const struct law_ack *ack, struct law_control *control)
{
	struct hybla *s = state;
	u32 grows = LAW_ACK_OPEN | LAW_ACK_CWND_LIMITED;
	u64 n = law_min(ack->newly_delivered, 0xffff), each, limit;

	hybla_take_rtt(s, ack->srtt_ns);
	if ((ack->flags & grows) != grows || !ack->acked || control->cwnd >= control->ssthresh)
		return;
	each = (hybla_exp2_q16(s) - (1 << 16)) << 16;
	if (s->variant != HYBLA_LINUX) {
		limit = law_min(control->ssthresh, LAW_MAX_CWND) - control->cwnd;
		control->cwnd += law_min((each - LAW_ONE) * n, limit);
		return;
	}
	s->cents += (u32)(each >> 25);
	limit = law_min(control->ssthresh, HYBLA_LINUX_MAX);
	each = law_min(control->cwnd + LAW_SEG(s->cents / HYBLA_CENT), limit);
	s->cents %= HYBLA_CENT;
	control->cwnd = each - law_min(LAW_SEG(n), each - LAW_ONE);
}

static inline u64 hybla_rho2_q16(const struct hybla *s)
{
	return (u64)s->rho_q16 * s->rho_q16 >> 16;
}

static inline void hybla_linux_on_ack(struct hybla *s, struct law_control *control)
{
	u32 w = (u32)(control->cwnd >> 32);
	u32 cents = (u32)(hybla_rho2_q16(s) * HYBLA_CENT >> 16) / w;

	s->cents += cents;
	if (cents < HYBLA_CENT)
		s->cnt++;
	if (s->cents >= HYBLA_CENT) {
		control->cwnd += LAW_SEG(s->cents / HYBLA_CENT);
		s->cents %= HYBLA_CENT;
		s->cnt = 0;
	} else if (!cents && s->cnt >= w) {
		control->cwnd += LAW_ONE;
		s->cnt = 0;
	}
	control->cwnd = law_min(control->cwnd, HYBLA_LINUX_MAX);
}

static inline void hybla_on_ack(void *state, u32 n, const struct law_ack *ack, struct law_control *control)
{
	struct hybla *s = state;

	if (s->variant == HYBLA_LINUX && ack->flags & (LAW_ACK_SACK | LAW_ACK_LOSS))
		law_add_every(control, &s->cnt, (u32)(control->cwnd >> 32), n);
	else if (s->variant == HYBLA_LINUX)
		hybla_linux_on_ack(s, control);
	else
		law_add_per_rtt(control, hybla_rho2_q16(s), n);
}

static inline void hybla_on_loss(void *state, const struct law_loss *loss, struct law_control *control)
{
	struct hybla *s = state;
	u64 half = control->cwnd >> 1;

	(void)loss;
	if (s->variant == HYBLA_LINUX)
		half &= ~(LAW_ONE - 1);
	control->ssthresh = law_max(half, LAW_MIN_SSTHRESH);
	s->cnt = 0; /* cents stay (measured) */
}

static inline void hybla_probe(const void *state, const struct law_control *control, u64 *out)
{
	const struct hybla *s = state;

	(void)control;
	out[0] = s->rho_q16;
}

LAW_OPS(hybla, .on_sample = hybla_on_sample, .probe = hybla_probe);

#endif
