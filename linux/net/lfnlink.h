/* SPDX-License-Identifier: GPL-2.0 */
/* The attributes of the queueing discipline "lfnlink", in TCA_OPTIONS. */
#ifndef LFNLINK_H
#define LFNLINK_H

#define LFNLINK_KIND "lfnlink"

enum {
	LFNLINK_UNSPEC,
	LFNLINK_RATE,	   /* u64, bit/s; 0: the link is down, nothing leaves it */
	LFNLINK_DELAY,	   /* u64, ns of propagation, of packets that leave from now on */
	LFNLINK_HOLD,	   /* u64, ns that a packet chosen by LFNLINK_HELD is held up */
	LFNLINK_JITTER,	   /* u64, ns: each packet takes up to this much longer */
	LFNLINK_LOST,	   /* u32[]: packets that are lost behind the queue */
	LFNLINK_HELD,	   /* u32[]: packets that are held up, of those not lost */
	LFNLINK_DUPLICATED, /* u32[]: packets that arrive twice, of those not lost */
	LFNLINK_ACKS,	   /* flag: the three count packets without payload, not those with */
	LFNLINK_UNOPENED,  /* u32[]: packets of handshakes that are lost: SYN, SYN-ACK, and where data count, packets
			      without payload; no other list counts a SYN-ACK */
	LFNLINK_SEED,	   /* u64: of the jitter's draws, before the first packet */
	LFNLINK_OTHER_LOSSES, /* flag: LFNLINK_LOST and LFNLINK_UNOPENED replace the lists of before. Their first gaps are
				 those that were used: a list goes on behind as many as the link has drawn */
	LFNLINK_IN_ORDER, /* flag: jitter lets no packet overtake another */
	LFNLINK_FLAGS_END,
};
#define LFNLINK_MAX (LFNLINK_FLAGS_END - 1)

/*
 * Each list holds gaps: how many packets pass before the next that is chosen. A list that is at its
 * end chooses no more. One attribute holds at most LFNLINK_GAPS of them; a later one goes on.
 */
#define LFNLINK_GAPS 8000

#endif
