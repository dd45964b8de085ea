/* SPDX-License-Identifier: GPL-2.0 */
/* The scenario of one run: a file of lines, as linux/README.md describes them. */
#ifndef SCENARIO_H
#define SCENARIO_H

#include <stdint.h>

enum { MAX_FLOWS = 200, MAX_CHANGES = 1000, MAX_SYSCTLS = 50 };
enum direction { FORWARD, REVERSE, DIRECTIONS };

struct gaps {
	uint32_t *values;
	int count;
};

struct link {
	int present;
	uint64_t rate_bps, delay_ns, hold_ns, jitter_ns, jitter_seed;
	char *queue; /* in the words of tc */
	struct gaps lost, held, duplicated, unopened;
};

struct flow {
	char law[32];
	uint64_t delay_ns; /* one way, on each way, besides the links' */
	int64_t start_us;
	int64_t stop_us;  /* nothing new is written from then on; -1: never */
	uint64_t size_bytes; /* 0: without end */
	int ecn, sack, delayed_ack;
	int reverse; /* data go from b to a */
	int pacing;
	int packet_bytes;   /* IP packet */
	int initial_window; /* segments, 0: the kernel's */
	/* A slow application writes a segment at a time, evenly in on_us, and pauses for off_us. 0: as fast as it can. */
	uint64_t write_bps, on_us, off_us;
};

struct change {
	int64_t at_us;
	enum direction link;
	int sets_rate, sets_delay;
	uint64_t rate_bps, delay_ns;
};

struct sysctl {
	char *name, *value;
};

struct scenario {
	int64_t duration_us, sample_us;
	uint64_t record_bytes; /* room for records of the calls of laws of ours */
	struct link links[DIRECTIONS];
	int flows, changes, sysctls;
	struct flow flow[MAX_FLOWS];
	struct change change[MAX_CHANGES];
	struct sysctl sysctl[MAX_SYSCTLS];
};

/* Reads a file, or ends the program with a message that names the line. */
void scenario_read(const char *file, struct scenario *scenario);

/* The largest packet of any flow. */
int scenario_mtu(const struct scenario *scenario);

#endif
