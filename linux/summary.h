/* SPDX-License-Identifier: GPL-2.0 */
/* Counts of queues and hosts in a run: TAG.link0.json ..., TAG.records, TAG.json last. */
#ifndef SUMMARY_H
#define SUMMARY_H

#include "scenario.h"

void write_summary(const struct scenario *scenario, const char *tag);

#endif
