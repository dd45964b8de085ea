/* SPDX-License-Identifier: GPL-2.0 */
/* A source of UDP, in the calling process's network namespace. */
#ifndef DATAGRAMS_H
#define DATAGRAMS_H

#include <stdint.h>

#include "scenario.h"

/* From now on datagrams that come here are discarded. Nothing answers them. */
void discard_datagrams(void);

/* Sends to the address from begin_us + the first burst's start to before begin_us + the run's duration. */
void send_datagrams(const struct scenario *scenario, const struct source *source, const char *address, int64_t begin_us)
	__attribute__((noreturn));

#endif
