/* The interface of a whole stack in a shared object, version 1: both ends of a connection, with its own recovery, pacer,
 * acknowledgements and flow control, without I/O. End 0 sends data to end 1. The payload of a datagram stays with the
 * stack; the simulator moves its number.
 *
 * The shared object exports
 *
 *     const struct lfn_stack *lfn_stack(void);
 *
 * Times are ns of simulated time. Calls for one connection come one after the other, from any thread; connections run at the
 * same time. A stack must not read a clock or draw from the operating system: runs are repeated, and must be equal.
 */
#ifndef LFN_STACK_H
#define LFN_STACK_H

#include <stdint.h>

#define LFN_STACK_VERSION 1u

/* A new connection. */
struct lfn_stack_setup {
	uint64_t now_ns;
	uint64_t seed;         /* For random decisions. */
	uint64_t size_bytes;   /* Data to deliver; UINT64_MAX: no end. */
	uint64_t packet_bytes; /* Largest IP packet. */
};

struct lfn_stack_datagram {
	uint64_t id;    /* Where the stack keeps its payload; the other end gets this number. */
	uint32_t bytes; /* Of the IP packet. */
	uint32_t ecn;   /* The two bits of its IP header. */
};

/* The connection as the sending end knows it, except read_bytes. A value that is not told is 0. */
struct lfn_stack_progress {
	uint64_t read_bytes;      /* Data that the application at end 1 has read. */
	uint64_t window_bytes;    /* Congestion window. */
	uint64_t ssthresh_bytes;  /* Threshold of slow start. */
	uint64_t in_flight_bytes; /* Sent, and neither acknowledged nor lost. */
	uint64_t pacing_Bps;      /* Bytes per second. */
	uint64_t srtt_ns;         /* Smoothed round-trip time. */
	uint64_t rtt_ns;          /* Its newest sample. */
	uint64_t min_rtt_ns;      /* Its smallest sample. */
	uint64_t lost_packets;    /* Found lost, or sent again. */
	uint64_t reductions;      /* Of the window. */
	uint64_t timeouts;        /* At which it sent a probe, or all again. */
	uint64_t segment_bytes;   /* A full packet as the window counts it. */
};

struct lfn_stack {
	uint32_t version;         /* LFN_STACK_VERSION. */
	const char *name;         /* In results: a letter, then letters, digits, . _ : - */
	/* Both ends of a new connection; NULL: it cannot be had with such packets. */
	void *(*create)(const struct lfn_stack_setup *setup);
	void (*destroy)(void *state);
	/* The next datagram that an end sends now: 1, and 0 if there is none. It is asked after each of the other calls, until
	 * then. */
	int (*transmit)(void *state, uint32_t end, uint64_t now_ns, struct lfn_stack_datagram *datagram);
	/* A datagram of the other end reaches this one with these bits of its IP header: as sent, marked, or erased. */
	void (*receive)(void *state, uint32_t end, uint64_t now_ns, uint64_t id, uint32_t ecn);
	/* When an end wants `timer`; UINT64_MAX: never. */
	uint64_t (*timeout)(void *state, uint32_t end);
	void (*timer)(void *state, uint32_t end, uint64_t now_ns);
	/* The application at end 0 writes nothing more. */
	void (*stop)(void *state, uint64_t now_ns);
	/* A datagram is under way no more: it and its copies were delivered or lost. */
	void (*forget)(void *state, uint64_t id);
	/* Asked after each of the other calls. */
	void (*progress)(void *state, struct lfn_stack_progress *progress);
};

#ifdef __cplusplus
extern "C"
#endif
const struct lfn_stack *lfn_stack(void);

#endif
