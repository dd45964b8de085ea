/* SPDX-License-Identifier: GPL-2.0 */
/* Packets that leave and reach the hosts of flows, into a file. */
#ifndef CAPTURE_H
#define CAPTURE_H

#include <stdint.h>

#include "scenario.h"

/* A packet in the file. */
struct captured {
	int64_t at_ns; /* of the run */
	uint32_t bytes; /* with 14 of framing */
	uint16_t flow;
	uint8_t receiver, leaves; /* the host, and whether the packet leaves it */
	uint8_t head[112];	  /* the packet's first bytes, those of Ethernet ahead of them */
};

/*
 * Taps a device of the network namespace: of the receiver of a flow, or of the sender of all (-1). Packets leave a
 * receiver delay_ns before they are seen.
 */
void capture_open(const char *device, int flow, uint64_t delay_ns);

/* Writes what all taps see between the times that the scenario says. */
void capture_run(const struct scenario *scenario, int64_t begin_us, const char *file) __attribute__((noreturn));

#endif
