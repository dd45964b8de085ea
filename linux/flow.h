/* SPDX-License-Identifier: GPL-2.0 */
#ifndef FLOW_H
#define FLOW_H

#include <stdint.h>
#include <stdio.h>

#include "qdisc.h"
#include "scenario.h"

/* Of a flow with the number 0 at its receiver; the next flow has the next. */
enum { PORT = 5001 };

/* Microseconds of CLOCK_MONOTONIC. */
int64_t now_us(void);
void sleep_until_us(int64_t at_us);

/* Takes connections in the calling process's network namespace and discards what comes. */
void receive(const struct flow *flow, int port) __attribute__((noreturn));

/* A socket of one end of the flow, in the calling process's network namespace. */
int flow_open(const struct flow *flow);

/* Sends the flow through the socket to the address and port, at the latest until begin_us + the run's duration. */
void transmit(const struct scenario *scenario, const struct flow *flow, int tcp, const char *address, int port,
	      int64_t begin_us) __attribute__((noreturn));

/* The file of the samples of the flow with this number, and a row of it: TCP_INFO and the counters of its link. */
FILE *flow_samples(const char *tag, int number);
void flow_sample(FILE *out, int tcp, int64_t time_us, const struct queue_counters *queue);

#endif
