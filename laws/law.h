/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The interface of a law (a congestion control algorithm): its inputs and decisions.
 *
 * A law owns its window, its rate, and nothing else: no clock, no packets, no
 * randomness but the seed that init gets. The sender (our simulator's, or Linux) owns
 * recovery, RTT, counting and slow start; a law with on_control has a start-up of its
 * own, and steers in recovery too. Everything a law may know arrives by value; everything that it
 * may decide leaves in struct law_control. The same header is compiled natively and
 * for BPF, so: integers only, no signed 64-bit division, no loop without a small
 * constant bound, no pointer but the arguments, state of bounded size.
 */
#ifndef LFN_LAW_H
#define LFN_LAW_H

#ifndef LFN_BPF
#include <stdint.h>
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;
#endif

/* Windows are Q32.32 segments in a u64. */
#define LAW_ONE (1ULL << 32)
#define LAW_SEG(n) ((u64)(n) << 32)
#define LAW_INFINITE (~0ULL)          /* initial ssthresh */
#define LAW_MIN_SSTHRESH LAW_SEG(2)   /* RFC 5681 (4) */
#define LAW_MAX_CWND LAW_SEG(1u << 26) /* 67 million segments; no law grows past it */

/* Private area of a Linux socket (icsk_ca_priv) is 104 bytes; slow start has 24 of them. A law with
 * on_control has no slow start: all 104 are its own, and where only the simulator runs it, more. */
#define LAW_PRIVATE_BYTES 104       /* Private area of a Linux socket. */
#define LAW_STATE_BYTES 80          /* State of a law with slow start before it. */
#define LAW_CONTROL_STATE_BYTES 256 /* State of a law with on_control, or of one for the simulator only. */

/* The ACK, as the sender saw it. Segments unless a suffix says otherwise. */
struct law_ack {
	u64 now_ns;       /* The sender's clock. */
	u64 rtt_ns;       /* RTT of the newest segment that this ACK delivered; 0: no valid sample (Karn). */
	u64 srtt_ns;      /* Smoothed RTT, RFC 6298; 0 before the first sample. */
	u64 min_rtt_ns;   /* Smallest RTT sample so far; 0 before the first. */
	u64 delivered;    /* Delivered since the start of the connection, each segment once. */
	u32 acked;        /* Newly covered by the cumulative ACK. */
	u32 newly_delivered; /* Newly covered or newly SACKed, each segment once. */
	u32 newly_lost;   /* Newly marked lost while this ACK was processed. */
	u32 inflight;     /* In flight after this ACK. */
	u32 ce;           /* Segments whose CE mark this ACK echoes. */
	u32 mss_B;        /* Payload bytes of a full segment. */
	u32 flags;        /* LAW_ACK_*. */
	u32 hold_us;      /* on_control: pacing keeps the next segment back for so long from now. */
};
#define LAW_ACK_OPEN 1u         /* The sender is in state Open or Disorder: no reduction is under way. */
#define LAW_ACK_ROUND_START 2u  /* First ACK of a new packet-timed round trip. */
#define LAW_ACK_CWND_LIMITED 4u /* The last flight used the whole window. */
#define LAW_ACK_DUP 8u          /* The ACK covers nothing new cumulatively. */
#define LAW_ACK_RECOVERY 16u    /* on_control: the ACK leaves the sender in state Recovery. */
#define LAW_ACK_LOSS 32u        /* on_control: it leaves the sender in state Loss, after a timeout. */
#define LAW_ACK_DISORDER 64u    /* The ACK finds the sender in state Disorder. */
#define LAW_ACK_SACK 128u       /* The ACK carries SACK blocks. */
#define LAW_ACK_RESTART 256u    /* The ACK is the first since a retransmission left with nothing in flight. */
#define LAW_ACK_PREDICTED 512u  /* on_sample of a variant in law_ops.predicted: header prediction takes the ACK, since it
				 * brings no SACK blocks, no echo and no other receive window (Linux: in_ack_event without
				 * CA_ACK_SLOWPATH). */
#define LAW_ACK_PACED 1024u     /* The sender spreads its segments, at Linux's own rate if the law sets none. */
#define LAW_ACK_FLIGHT 2048u    /* on_sample in the simulator: the ACK covers all that had left when the last ACK with this flag
				 * came, or it is the first (Linux: snd_una has reached the snd_nxt of then). */

/* A delivery-rate sample, between two deliveries (draft-ietf-ccwg-bbr section 4.1):
 * P is the newest segment that the ACK delivered, or the segment that is lost. Segments. */
struct law_rate {
	u64 delivered;       /* Delivered since the start of the connection. */
	u64 prior_delivered; /* Delivered when P was sent. */
	u64 lost;            /* Marked lost since the start of the connection. */
	u64 prior_lost;      /* Marked lost when P was sent. */
	u64 interval_ns;     /* The interval in which delivered - prior_delivered were; 0: no valid sample. */
	u32 tx_in_flight;    /* In flight when P was sent, P included. */
	u32 prior_inflight;  /* In flight before this ACK. */
	u32 flags;           /* LAW_RATE_*. */
	u32 pad;             /* Zero. */
};
#define LAW_RATE_APP_LIMITED 1u /* P was sent when there was too little to send. */

/* A congestion event: one per window of data, whatever was lost in it. */
struct law_loss {
	u64 now_ns;     /* The sender's clock. */
	u64 rtt_ns;     /* Last valid RTT sample; 0: none yet. */
	u64 srtt_ns;    /* Smoothed RTT; 0 before the first sample. */
	u64 min_rtt_ns; /* Smallest RTT sample so far; 0 before the first. */
	u32 kind;       /* How the loss showed: LAW_LOSS_*. */
	u32 inflight;   /* Segments in flight. */
	u32 mss_B;      /* Payload bytes of a full segment. */
	u32 pad;        /* Zero. */
};
#define LAW_LOSS_FAST 0u /* By SACK, duplicate ACKs or RACK. */
#define LAW_LOSS_RTO 1u  /* By the retransmission timeout; the sender then sets cwnd to 1. */
#define LAW_LOSS_ECN 2u  /* By an echoed CE mark; nothing is lost. */

/* The decisions of a law. The sender does not clamp them: a law keeps cwnd >= 1 segment. */
struct law_control {
	u64 cwnd;        /* Congestion window, in Q32.32 segments. */
	u64 ssthresh;    /* Slow-start threshold, in Q32.32 segments; LAW_INFINITE at the start. */
	u64 pacing_Bps;  /* Pacing rate in bytes a second; 0: the ACK clock alone. */
	u64 next_tick_ns; /* Absolute time of the next on_tick; 0: none. */
	u32 block;       /* Segments of new data that may leave back to back; 0: any number. */
	u32 blocks;      /* Blocks in a round trip: the next may begin srtt/blocks after this one did. */
};

#define LAW_CONFIG_NO_SACK 1u /* The connection has no selective acknowledgements; Linux does not tell. */
#define LAW_PARAMETERS 8 /* Parameters that a law may have. */
#define LAW_PARAMETER_ONE (1u << 20) /* A parameter of 1. */
struct law_config { /* Parameters of a new connection. */
	u64 now_ns;  /* The sender's clock. */
	u64 srtt_ns; /* The RTT of the handshake; 0: there was none. */
	u32 variant; /* Index in the registry line's list of variants. */
	u32 mss_B;   /* Payload bytes of a full segment. */
	u32 seed;    /* The connection's own, for a law that draws; the same run has the same. */
	u32 flags;   /* LAW_CONFIG_*. */
	u64 parameters[LAW_PARAMETERS]; /* In the order of the registry line, each LAW_PARAMETER_ONE times its
					 * value; Linux gives none. */
};

/* Callbacks. All but init, on_loss, and either on_ack or on_control may be absent (a null pointer).
 *   init      the handshake is over, and no data have left; without a handshake, the connection begins. State is
 *             zeroed; control holds the initial window and ssthresh.
 *   on_sample every ACK, duplicates and recovery included, before on_ack: estimators. In state
 *             Open and slow start it may also end that (ssthresh = cwnd), or grow cwnd towards
 *             ssthresh beyond what slow start does. For an ACK that brings a loss or a mark it comes after
 *             on_loss in the simulator, and before it in Linux.
 *   on_ack    congestion avoidance: n segments newly delivered in state Open (or Loss),
 *             with the window in use and cwnd >= ssthresh. Slow start is not the law's.
 *   on_loss   sets control->ssthresh (>= 2 segments); cwnd still holds the window before
 *             the event, and the sender brings it down (PRR; 1 after an RTO). It must not
 *             change cwnd.
 *   on_open   the episode ended; the sender has just set cwnd = ssthresh (after an RTO,
 *             cwnd is where slow start left it).
 *   on_tick   at control->next_tick_ns.
 *   on_undo   the last event was spurious; the sender has restored cwnd and ssthresh.
 *   probe     up to LAW_PROBES values, in the order and with the scale of the registry line.
 *
 * A law with on_control owns cwnd and pacing_Bps whatever the sender's state; on_sample, on_ack, slow
 * start and the descent of the window (PRR) are not called, and ssthresh means nothing.
 *   on_control  every ACK, last of all; once before the first, when the handshake has given an RTT.
 *               Returns LAW_CONTROL_* flags.
 *   on_lost     every segment marked lost, before on_loss.
 *   on_restart  a segment leaves when nothing was in flight, for want of data.
 *   on_loss     as above, at the entry to CWR, Recovery or Loss; it need not set anything.
 *   on_open     as above, but cwnd is what the law left.
 */
#define LAW_CONTROL_APP_LIMITED 1u /* Mark everything sent until the current flight is delivered as
				    * app-limited: the law limits its rate on purpose. */
#define LAW_PROBES 8 /* Values that probe may write. */
struct law_ops {
	void (*init)(void *state, const struct law_config *config, struct law_control *control);
	void (*on_sample)(void *state, const struct law_ack *ack, struct law_control *control);
	void (*on_ack)(void *state, u32 n, const struct law_ack *ack, struct law_control *control);
	void (*on_loss)(void *state, const struct law_loss *loss, struct law_control *control);
	void (*on_open)(void *state, const struct law_ack *ack, struct law_control *control);
	void (*on_tick)(void *state, u64 now_ns, struct law_control *control);
	void (*on_undo)(void *state, struct law_control *control);
	void (*probe)(const void *state, const struct law_control *control, u64 *out);
	u32 (*on_control)(void *state, const struct law_ack *ack, const struct law_rate *rate,
			  struct law_control *control);
	void (*on_lost)(void *state, u64 now_ns, const struct law_rate *lost,
			const struct law_control *control);
	void (*on_restart)(void *state, u64 now_ns, struct law_control *control);
	u32 state_bytes;
	u32 predicted; /* a bit for each variant that needs LAW_ACK_PREDICTED */
};

static inline u64 law_max(u64 a, u64 b) { return a > b ? a : b; }
static inline u64 law_min(u64 a, u64 b) { return a < b ? a : b; }
static inline u64 law_clamp(u64 x, u64 lo, u64 hi) { return x < lo ? lo : x > hi ? hi : x; }

/* cwnd += gain/cwnd for each of n segments, gain in Q16 segments per round trip (at most
 * 65,535 of them): one division for the whole ACK, off by at most 2^-16/cwnd of itself.
 * Never faster than slow start (n segments). */
static inline void law_add_per_rtt(struct law_control *c, u64 gain_q16, u32 n)
{
	u64 gain = law_min(gain_q16, 0xffffffff) << 32;
	u64 inc = gain / law_max(c->cwnd >> 16, 1); /* Q48 / Q16 = Q32 a segment */

	c->cwnd = law_min(c->cwnd + law_min(inc, LAW_ONE) * n, LAW_MAX_CWND);
}

/* Whether the ACK is the first that leaves the sender in state Loss; `in_loss` keeps the state. Linux tells a law of that
 * state also where the timeout is no new reduction. */
static inline u32 law_enters_loss(u8 *in_loss, const struct law_ack *ack)
{
	u8 before = *in_loss;

	*in_loss = (ack->flags & LAW_ACK_LOSS) != 0;
	return *in_loss && !before;
}

/* The integer rule of Linux (tcp_cong_avoid_ai): +1 segment for every w segments acked,
 * counted in *cnt, which the caller zeroes at reductions. cwnd keeps its fraction. */
static inline void law_add_every(struct law_control *c, u32 *cnt, u32 w, u32 n)
{
	w = w ? w : 1;
	if (*cnt >= w) {
		*cnt = 0;
		c->cwnd += LAW_ONE;
	}
	*cnt += n;
	if (*cnt >= w) {
		u32 whole = *cnt / w;

		*cnt -= whole * w;
		c->cwnd += LAW_SEG(whole);
	}
	c->cwnd = law_min(c->cwnd, LAW_MAX_CWND);
}

/* a * b / c for a and c below 2^43, b below 2^40, if the quotient fits 64 bits: splits b, so
 * that nothing on the way needs more. */
static inline u64 law_muldiv(u64 a, u64 b, u64 c)
{
	u64 hi = b >> 20, lo = b & 0xfffff;

	c = c ? c : 1;
	return ((a * hi / c) << 20) + (((a * hi % c) << 20) + a * lo) / c;
}

/* All ones if a <= b, else 0; |b - a| < 2^63. In a loop this must replace a branch: the BPF
 * verifier follows every path on its own, 2^k of them after k turns. */
static inline u64 law_mask_le(u64 a, u64 b) { return ((b - a) >> 63) - 1; }

/* Leading zeros of x > 0; __builtin_clzll crashes clang 14 for BPF. */
static inline u32 law_clz(u64 x)
{
	u32 zeros = 0, half;

	for (half = 32; half; half >>= 1) {
		u32 shift = half & (u32)law_mask_le(x >> (64 - half), 0);

		x <<= shift;
		zeros += shift;
	}
	return zeros;
}

/* The last line of a law's header: LAW_OPS(NAME, .probe = NAME_probe). NAME is the law's name
 * with underscores for hyphens, struct NAME its state; NAME_init, NAME_on_ack and NAME_on_loss
 * must exist, the optional callbacks that it has follow. All are static inline, with the types
 * of struct law_ops (a callback begins with "struct NAME *s = state;"). The kernel shim reads the
 * table at compile time: the compiler folds it away. LAW_CONTROL_OPS is for a law with on_control:
 * NAME_init, NAME_on_control and NAME_on_loss must exist. LAW_WIDE_OPS is LAW_OPS with as much state, for a
 * law that only the simulator runs. */
#define LAW_OPS(name, ...) LAW_TABLE(name, LAW_STATE_BYTES, .on_ack = name##_on_ack, __VA_ARGS__)
#define LAW_WIDE_OPS(name, ...) LAW_TABLE(name, LAW_CONTROL_STATE_BYTES, .on_ack = name##_on_ack, __VA_ARGS__)
#define LAW_CONTROL_OPS(name, ...) \
	LAW_TABLE(name, LAW_CONTROL_STATE_BYTES, .on_control = name##_on_control, __VA_ARGS__)
#define LAW_TABLE(name, most_bytes, ...) \
	_Static_assert(sizeof(struct name) <= most_bytes, #name ": state exceeds " #most_bytes); \
	static const struct law_ops law_ops_##name = { \
		.init = name##_init, .on_loss = name##_on_loss, .state_bytes = sizeof(struct name), \
		__VA_ARGS__ \
	}

#endif
