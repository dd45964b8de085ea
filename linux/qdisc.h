/* SPDX-License-Identifier: GPL-2.0 */
/* The link's queueing discipline, over netlink. All act in the calling process's network namespace. */
#ifndef QDISC_H
#define QDISC_H

#include <stdint.h>

#include "scenario.h"

struct queue_counters {
	uint32_t waiting, waiting_bytes, drops, packets, overlimits;
	uint64_t bytes;
};

/* A netlink socket of this network namespace. */
int qdisc_open(void);

/* Makes the device's root a link, whose queue is a FIFO until tc puts another at 1:1. */
void qdisc_add(int socket, const char *device, const struct link *link, int counts_acks);

/* The kind of a queue that tc does not know: RFC 9332, lfndual in the kernel. */
#define DUALPI2 "dualpi2 "

/* Puts DualPI2 at 1:1 of a link, from words NAME=VALUE, which are integers: all of dual_words in qdisc.c. */
void qdisc_dual(int socket, const char *device, const char *words);

void qdisc_change(int socket, int device_index, const struct change *change);

/* Counters of the queue, which is the qdisc 10:. Keeps the old ones if the kernel has none. */
void qdisc_read(int socket, int device_index, struct queue_counters *counters);

#endif
