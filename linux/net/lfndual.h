/* SPDX-License-Identifier: GPL-2.0 */
/* The attributes of the queueing discipline "lfndual", DualPI2 (RFC 9332), in TCA_OPTIONS: all u64. */
#ifndef LFNDUAL_H
#define LFNDUAL_H

#define LFNDUAL_KIND "lfndual"
/* Fractions and gains in Hz are in 2^-30. */
#define LFNDUAL_ONE (1ULL << 30)

enum {
	LFNDUAL_UNSPEC,
	LFNDUAL_PACKETS, /* most packets of both queues */
	LFNDUAL_BYTES,	 /* most bytes of both */
	LFNDUAL_TARGET,	 /* ns */
	LFNDUAL_TUPDATE, /* ns */
	LFNDUAL_ALPHA,
	LFNDUAL_BETA,
	LFNDUAL_COUPLING,
	LFNDUAL_STEP,	    /* ns */
	LFNDUAL_RAMP,	    /* ns */
	LFNDUAL_FLOOR,	    /* packets of the largest size that the step is at least */
	LFNDUAL_OVERFLOW,   /* 1: no drop where all L packets are marked */
	LFNDUAL_PROTECTION, /* percent */
	LFNDUAL_ANY_ECT,    /* 1: ECT(0) goes to the L queue, too */
	LFNDUAL_MTU,	    /* bytes of the largest packet at the queue */
	LFNDUAL_FROM,	    /* ns of the kernel's clock from which on packets are counted in /proc/lfn_queues */
	LFNDUAL_END,
};
#define LFNDUAL_MAX (LFNDUAL_END - 1)

#ifdef __KERNEL__
struct Qdisc;
/* The link behind a queue has this rate from now on; queues of other kinds take no notice. */
void lfndual_set_rate(struct Qdisc *sch, u64 rate_bps);
#endif

#endif
