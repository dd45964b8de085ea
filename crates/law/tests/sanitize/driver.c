/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Random calls of every callback, in any order, with values that no sender would pass: is there
 * undefined behaviour, or an access beyond the state? The generated table ends with a null name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "slow_start.h"

struct subject {
	const char *name;
	const struct law_ops *(*ops)(void);
	u32 variants;
	u64 bounds[LAW_PARAMETERS][2]; /* of each parameter, as law_config has its value */
};
extern const struct subject subjects[];

static u64 random_state;

/* splitmix64 */
static u64 draw(void)
{
	u64 z = random_state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/* 0, or anything below 2^bits, as many in each octave; sometimes the largest. */
static u64 wide(u32 bits)
{
	u64 x = draw() >> (64 - bits);

	return draw() % 64 ? x >> draw() % bits : x | ((1ULL << (bits - 1)) - 1) << 1 | 1;
}

static struct law_ack draw_ack(u64 now_ns)
{
	struct law_ack ack = {
		.now_ns = now_ns, .rtt_ns = wide(37), .srtt_ns = wide(37), .min_rtt_ns = wide(37),
		.delivered = wide(63), .acked = (u32)wide(16), .newly_delivered = (u32)wide(16),
		.newly_lost = (u32)wide(16), .inflight = (u32)wide(32), .ce = (u32)wide(16),
		.mss_B = (u32)wide(16), .flags = (u32)wide(6),
	};

	return ack;
}

static struct law_rate draw_rate(void)
{
	struct law_rate rate = {
		.prior_delivered = wide(63), .prior_lost = wide(63), .interval_ns = wide(37),
		.tx_in_flight = (u32)wide(32), .prior_inflight = (u32)wide(32), .flags = (u32)wide(1),
	};

	rate.delivered = rate.prior_delivered + wide(32);
	rate.lost = rate.prior_lost + wide(32);
	return rate;
}

static struct law_loss draw_loss(u64 now_ns)
{
	struct law_loss loss = {
		.now_ns = now_ns, .rtt_ns = wide(37), .srtt_ns = wide(37), .min_rtt_ns = wide(37),
		.kind = (u32)(draw() % 3), .inflight = (u32)wide(32), .mss_B = (u32)wide(16),
	};

	return loss;
}

static u64 draw_cwnd(void)
{
	return law_clamp(wide(59), LAW_ONE, LAW_MAX_CWND);
}

static void drive(const struct subject *subject, u32 variant, u32 calls)
{
	const struct law_ops *ops = subject->ops();
	/* Of the state's own size, so that the sanitizer sees an access beyond it. */
	void *state = calloc(1, ops->state_bytes);
	u64 probes[LAW_PROBES], now_ns = wide(62);
	struct law_config config = { .now_ns = now_ns, .srtt_ns = wide(45), .variant = variant, .mss_B = (u32)wide(16),
				     .seed = (u32)wide(32), .flags = (u32)wide(1) };
	struct law_control control = { .cwnd = draw_cwnd(), .ssthresh = LAW_INFINITE };

	if (!state)
		abort();
	for (u32 i = 0; i < LAW_PARAMETERS; i++)
		config.parameters[i] = law_clamp(wide(40), subject->bounds[i][0], subject->bounds[i][1]);
	ops->init(state, &config, &control);
	while (calls--) {
		struct law_ack ack = draw_ack(now_ns);
		struct law_loss loss = draw_loss(now_ns);
		struct law_rate rate = draw_rate();

		switch (draw() % 8) {
		case 0:
			control.cwnd = draw_cwnd();
			control.ssthresh = draw() % 2 ? LAW_INFINITE : law_max(draw_cwnd(), LAW_MIN_SSTHRESH);
			break;
		case 1:
			ops->on_loss(state, &loss, &control);
			break;
		case 2:
			if (ops->on_open && control.ssthresh != LAW_INFINITE)
				ops->on_open(state, &ack, &control);
			break;
		case 3:
			if (ops->on_undo)
				ops->on_undo(state, &control);
			break;
		case 4:
			now_ns += wide(45);
			if (ops->on_tick)
				ops->on_tick(state, now_ns, &control);
			if (ops->on_restart)
				ops->on_restart(state, now_ns, &control);
			break;
		case 5:
			if (ops->probe)
				ops->probe(state, &control, probes);
			break;
		default:
			if (ops->on_sample)
				ops->on_sample(state, &ack, &control);
			if (ops->on_ack)
				ops->on_ack(state, (u32)wide(16), &ack, &control);
			if (ops->on_lost)
				ops->on_lost(state, now_ns, &rate, &control);
			if (ops->on_control)
				(void)ops->on_control(state, &ack, &rate, &control);
		}
		if (control.cwnd < LAW_ONE || control.cwnd > LAW_MAX_CWND || control.ssthresh < LAW_MIN_SSTHRESH) {
			fprintf(stderr, "%s, variant %u: cwnd %llu, ssthresh %llu\n", subject->name, variant,
				(unsigned long long)control.cwnd, (unsigned long long)control.ssthresh);
			abort();
		}
	}
	free(state);
}

static void drive_slow_start(u32 kind, u32 calls)
{
	struct slow_start *s = malloc(sizeof(*s));
	struct law_control control = { .cwnd = draw_cwnd(), .ssthresh = LAW_INFINITE };
	u64 now_ns = wide(62);

	if (!s)
		abort();
	slow_start_init(s, kind);
	while (calls--) {
		struct law_ack ack = draw_ack(now_ns);
		struct law_loss loss = draw_loss(now_ns);

		now_ns += wide(40);
		if (draw() % 8 == 0) {
			control.cwnd = draw_cwnd();
			control.ssthresh = draw() % 2 ? LAW_INFINITE : law_max(draw_cwnd(), LAW_MIN_SSTHRESH);
			control.pacing_Bps = draw() % 2;
		}
		if (draw() % 32 == 0)
			slow_start_on_loss(s, &loss);
		slow_start_on_sample(s, &ack, &control);
		if (control.cwnd < control.ssthresh)
			(void)slow_start_on_ack(s, ack.acked, &ack, &control);
		if (control.cwnd > LAW_MAX_CWND)
			abort();
	}
	free(s);
}

/* The helper that laws divide with, against 128 bits. */
static void check_muldiv(u32 calls)
{
	while (calls--) {
		u64 a = wide(43), b = wide(40), c = law_max(wide(43), 1);
		unsigned __int128 wanted = (unsigned __int128)a * b / c;

		if (wanted >> 64 == 0 && law_muldiv(a, b, c) != (u64)wanted) {
			fprintf(stderr, "law_muldiv(%llu, %llu, %llu)\n", (unsigned long long)a,
				(unsigned long long)b, (unsigned long long)c);
			abort();
		}
	}
}

int main(void)
{
	const struct subject *subject;
	u32 variant, seed;

	for (subject = subjects; subject->name; subject++)
		for (variant = 0; variant < subject->variants; variant++)
			for (seed = 0; seed < 50; seed++) {
				random_state = seed;
				drive(subject, variant, 2000);
			}
	for (seed = 0; seed < 50; seed++)
		for (variant = SLOW_START_CLASSIC; variant <= SLOW_START_HYSTART_PP; variant++)
			drive_slow_start(variant, 2000);
	check_muldiv(1000000);
	puts("no undefined behaviour");
	return 0;
}
