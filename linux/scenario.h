/* SPDX-License-Identifier: GPL-2.0 */
/* The scenario of one run: a file of lines, as linux/README.md describes them. */
#ifndef SCENARIO_H
#define SCENARIO_H

#include <stdint.h>

enum { MAX_FLOWS = 200, MAX_CHANGES = 1000, MAX_SYSCTLS = 50, MAX_SOURCES = 20 };
/* Wire w joins two nodes by the links 2w and 2w + 1, one each way. */
enum { MAX_WIRES = 16, MAX_WAYS = 2 * MAX_WIRES, MAX_NODES = MAX_WIRES + 1 };
enum { FORWARD, REVERSE };
/* Set-up is done by then: the run's time 0, by the kernel's clock. */
enum { BEGIN_US = 6000000 };

struct gaps {
	uint32_t *values;
	int count;
};

struct link {
	int present;
	int from, to; /* nodes */
	uint64_t rate_bps, delay_ns, hold_ns, jitter_ns, jitter_seed;
	int jitter_in_order;
	char *queue; /* in the words of tc, or DUALPI2 and those of qdisc_dual */
	struct gaps lost, held, duplicated, unopened;
};

/* Links in the order in which a packet takes them; none: the only ones, those of a dumbbell. */
struct path {
	int links[MAX_WIRES], count;
};

struct flow {
	char law[32];
	struct path data, acks;
	uint64_t delay_ns; /* one way, on each way, besides the links' */
	int64_t start_us;
	int64_t stop_us;  /* nothing new is written from then on; -1: never */
	uint64_t size_bytes; /* 0: without end */
	int ecn, sack, delayed_ack;
	int reverse; /* data go from b to a */
	int pacing;
	int packet_bytes;   /* IP packet */
	int initial_window; /* segments, 0: the kernel's */
	uint64_t receive_window; /* bytes that its receiver advertises at most, 0: what its buffer allows */
	/* A slow application writes a segment at a time, evenly in on_us, and pauses for off_us. 0: as fast as it can. */
	uint64_t write_bps, on_us, off_us;
};

struct change {
	int64_t at_us;
	int link;
	int sets_rate, sets_delay, sets_losses;
	uint64_t rate_bps, delay_ns;
	struct gaps lost, unopened;
	int flow; /* that takes the paths from then on; -1: it is a change of the link */
	struct path data, acks;
};

struct burst {
	uint64_t start_ps, stop_ps, rate_bps;
};

/* A source of UDP. */
struct source {
	struct path data;
	int packet_bytes; /* IP packet */
	struct burst *burst;
	int bursts;
};

struct sysctl {
	char *name, *value;
};

struct scenario {
	int64_t duration_us, sample_us;
	uint64_t record_bytes; /* room for records of the calls of laws of ours */
	/* Packets at the hosts of flows are recorded between these times, at most so many; 0: none. */
	int64_t capture_from_us, capture_to_us;
	uint64_t capture_packets;
	struct link links[MAX_WAYS];
	int wires, nodes, flows, sources, changes, sysctls;
	struct source source[MAX_SOURCES];
	struct flow flow[MAX_FLOWS];
	struct change change[MAX_CHANGES];
	struct sysctl sysctl[MAX_SYSCTLS];
};

/* Reads a file, or ends the program with a message that names the line. */
void scenario_read(const char *file, struct scenario *scenario);

/* The largest packet of any flow or source. */
int scenario_mtu(const struct scenario *scenario);

#endif
