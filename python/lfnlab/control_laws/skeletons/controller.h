/* The interface of a congestion controller in a shared object, version 1.
 *
 * A controller owns the window and the pacing rate of one connection in every state. The simulator tells it of each packet, as
 * the controllers of QUIC stacks are told (RFC 9002, appendix B). The sender keeps loss detection, RTT estimates, the
 * retransmission timeout and SACK, which are TCP's.
 *
 * The shared object exports
 *
 *     const struct lfn_controller *lfn_controller(void);
 *
 * Times are ns of simulated time, sizes are bytes of payload, rates are bytes of payload per second. Calls for one connection
 * come one after the other, from any thread; connections run at the same time. A controller must not read a clock, draw
 * from the operating system, or keep state that connections share: runs are repeated, and must be equal.
 *
 * docs/controllers.md describes the order of the calls, and what ends a run.
 */
#ifndef LFN_CONTROLLER_H
#define LFN_CONTROLLER_H

#include <stdint.h>

#define LFN_CONTROLLER_VERSION 1u
#define LFN_CONTROLLER_VALUES 8

/* A new connection. */
struct lfn_config {
	uint64_t now_ns;
	uint64_t srtt_ns;              /* From the handshake; 0 without one. */
	uint64_t initial_window_bytes;
	uint32_t packet_bytes;         /* Payload of a full packet. */
	uint32_t seed;                 /* For random decisions. */
};

/* One transmission of a packet. A retransmission is a packet of its own. */
struct lfn_packet {
	uint64_t number;  /* Transmissions of the connection before it. */
	uint64_t sent_ns;
	uint32_t bytes;
	uint32_t flags;   /* LFN_PACKET_*. */
};
#define LFN_PACKET_APP_LIMITED 1u /* It left when the sender had no more data. */

/* An ACK, after its packets. */
struct lfn_ack {
	uint64_t now_ns;
	uint64_t rtt_ns;             /* Of the newest packet that it delivered; 0: no valid sample. */
	uint64_t srtt_ns;            /* Smoothed (RFC 6298); 0 before the first sample. */
	uint64_t min_rtt_ns;         /* Smallest sample so far; 0 before the first. */
	uint64_t in_flight_bytes;    /* After it. */
	uint64_t delivered_bytes;    /* Since the start of the connection. */
	uint64_t rate_bytes;         /* Delivery-rate sample: bytes delivered ... */
	uint64_t rate_interval_ns;   /* ... in this time; 0: no valid sample. */
	uint32_t acked_bytes;        /* That it delivered. */
	uint32_t lost_bytes;         /* That it showed to be lost. */
	uint32_t ce_packets;         /* Whose CE mark it echoes. */
	uint32_t flags;              /* LFN_ACK_*. */
};
#define LFN_ACK_WINDOW_LIMITED 1u   /* The last flight used the whole window. */
#define LFN_ACK_ROUND_START 2u      /* The first of a new round trip, counted by packets. */
#define LFN_ACK_RECOVERY 4u         /* The sender repairs losses of an episode, or has been told of a mark in this window. */
#define LFN_ACK_DUPLICATE 16u       /* Data above a hole, or nothing: TCP's windows do not grow by it. */
#define LFN_ACK_RATE_APP_LIMITED 8u /* The sample's packet left when the sender had no more data. */

/* Events of the connection. */
#define LFN_EVENT_LOSS 0u          /* First loss of a window of data; its packets were told by `lost`. */
#define LFN_EVENT_TIMEOUT 1u       /* The retransmission timeout: all that was in flight is taken for lost. */
#define LFN_EVENT_CE 2u            /* First mark of a window of data. */
#define LFN_EVENT_SPURIOUS 3u      /* The last LOSS or TIMEOUT was none. */
#define LFN_EVENT_RECOVERED 4u     /* The episode of losses or marks is over. */
#define LFN_EVENT_RESTART 5u       /* A packet leaves when nothing was in flight, for want of data. */
#define LFN_EVENT_TIMEOUT_AGAIN 6u /* A timeout within an episode of losses, or another in a row. */

/* Decisions of the controller. It may write the fields in every call but `probe`; they keep their values. */
struct lfn_control {
	uint64_t window_bytes;   /* At least one packet. */
	uint64_t pacing_Bps;     /* 0: no pacing. */
	uint64_t next_tick_ns;   /* When `tick` is wanted; 0: never. It becomes 0 before the call. */
};

struct lfn_controller {
	uint32_t version;        /* LFN_CONTROLLER_VERSION. */
	uint32_t value_count;    /* Of `probe`, at most LFN_CONTROLLER_VALUES. */
	const char *name;        /* In results: a letter, then letters, digits, . _ : - */
	const char *const *values; /* Names of the values of `probe`; NULL: none. */
	/* State of a new connection; NULL: it cannot be had. */
	void *(*create)(const struct lfn_config *config, struct lfn_control *control);
	void (*destroy)(void *state);
	/* Each but `ack` may be NULL. */
	void (*sent)(void *state, uint64_t now_ns, const struct lfn_packet *packet, uint64_t in_flight_bytes,
		     struct lfn_control *control);
	void (*acked)(void *state, uint64_t now_ns, const struct lfn_packet *packet, struct lfn_control *control);
	void (*lost)(void *state, uint64_t now_ns, const struct lfn_packet *packet, struct lfn_control *control);
	void (*ack)(void *state, const struct lfn_ack *ack, struct lfn_control *control);
	void (*event)(void *state, uint64_t now_ns, uint32_t event, uint64_t in_flight_bytes, struct lfn_control *control);
	void (*tick)(void *state, uint64_t now_ns, struct lfn_control *control);
	void (*probe)(const void *state, double *values);
};

#ifdef __cplusplus
extern "C"
#endif
const struct lfn_controller *lfn_controller(void);

#endif
