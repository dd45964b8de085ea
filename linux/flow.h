/* SPDX-License-Identifier: GPL-2.0 */
#ifndef FLOW_H
#define FLOW_H

#include <stdint.h>

#include "scenario.h"

/* Of a flow with the number 0 at its receiver; the next flow has the next. */
enum { PORT = 5001 };

/* Microseconds of CLOCK_MONOTONIC. */
int64_t now_us(void);
void sleep_until_us(int64_t at_us);

/* Takes connections in the calling process's network namespace and discards what comes. */
void receive(const struct flow *flow, int port) __attribute__((noreturn));

/*
 * One flow to the address and port, from begin_us + its start to begin_us + the run's duration. Writes a row
 * of TCP_INFO and of the bottleneck's counters for each sample to the file. queue_socket and
 * queue_device are of the bottleneck's namespace.
 */
void transmit(const struct scenario *scenario, const struct flow *flow, const char *address, int port,
	      int64_t begin_us, const char *file, int queue_socket, int queue_device)
	__attribute__((noreturn));

#endif
