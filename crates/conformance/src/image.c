/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Between the records of kernel/record.bpf.h and a socket as minimal.bpf.h lays it out, which is what
 * the natively compiled shim and an object that no loader has relocated work on. */
#include <stddef.h>
#include "law.bpf.h"
#include "record.bpf.h"

/* The state on which a call works. Rust owns it as words. */
struct machine {
	struct tcp_sock tp;
	struct flow flow;
	u64 has_flow;
	u64 sent; /* the ACK that the call sent: rcv_nxt, SENT, and ECE if it has it */
	union {
		struct ack_sample ack;
		struct rate_sample rate;
	} sample;
	u64 context[4]; /* the arguments as BPF gets them */
};

extern const u64 lfn_machine_bytes, lfn_image_bytes, lfn_record_bytes, lfn_context_offset;
const u64 lfn_machine_bytes = sizeof(struct machine);
const u64 lfn_image_bytes = sizeof(struct image);
const u64 lfn_record_bytes = sizeof(struct record);
const u64 lfn_context_offset = offsetof(struct machine, context);

/* Names of an image's words, up to the law's state. */
extern const char *const lfn_image_names[];
const char *const lfn_image_names[] = {
#define X(field) #field,
	SOCK_FIELDS(X) TCP_FIELDS(X)
#undef X
	"rtt_min", "icsk_ca_state", "is_cwnd_limited", "ack_pending", "has_flow",
};

static _Thread_local struct machine *in_hand;

void *lfn_storage(u64 flags)
{
	if (flags & BPF_SK_STORAGE_GET_F_CREATE)
		in_hand->has_flow = 1;
	return in_hand->has_flow ? &in_hand->flow : NULL;
}

enum { ECE = 1 << 0, SENT = 1 << 1 }; /* above rcv_nxt */

/* As Linux: the ACK counts as one of all that has arrived. */
void lfn_send_ack(u32 rcv_nxt)
{
	struct tcp_sock *tp = &in_hand->tp;
	u64 ece = tp->ecn_flags & TCP_ECN_DEMAND_CWR ? ECE : 0;

	in_hand->sent = rcv_nxt | (SENT | ece) << 32;
	tp->rcv_wup = tp->rcv_nxt;
}

u64 lfn_sent(const struct machine *machine);
u64 lfn_sent(const struct machine *machine)
{
	return machine->sent;
}

void lfn_set(struct machine *machine, const struct record *record, const struct image *image);
u64 lfn_call(const struct tcp_congestion_ops *law, struct machine *machine, u64 call);
void lfn_take(struct machine *machine, struct image *image);

/* The socket as `image` has it, and the arguments of the call as `record` has them. */
void lfn_set(struct machine *machine, const struct record *record, const struct image *image)
{
	struct tcp_sock *tp = &machine->tp;
	struct sock *sk = (struct sock *)tp;
	u32 i;

	*machine = (struct machine){ .flow = image->flow, .has_flow = image->has_flow };
	in_hand = machine;
#define X(field) sk->field = image->field;
	SOCK_FIELDS(X)
#undef X
#define X(field) tp->field = image->field;
	TCP_FIELDS(X)
#undef X
	tp->rtt_min.s[0].v = image->rtt_min_us;
	tp->inet_conn.icsk_ca_state = image->ca_state;
	tp->is_cwnd_limited = image->is_cwnd_limited;
	tp->inet_conn.icsk_ack.pending = image->ack_pending;
	for (i = 0; i < PRIVATE_WORDS; i++)
		tp->inet_conn.icsk_ca_priv[i] = image->icsk_ca_priv[i];

	machine->context[0] = (u64)tp;
	machine->context[1] = record->arguments[0];
	machine->context[2] = record->arguments[1];
#define X(field, i) machine->sample.ack.field = record->sample[i];
	if (record->call == PKTS_ACKED) {
		ACK_SAMPLE(X)
		machine->context[1] = (u64)&machine->sample;
	}
#undef X
#define X(field, i) machine->sample.rate.field = record->sample[i];
	if (record->call == CONG_CONTROL) {
		RATE_SAMPLE(X)
		machine->context[3] = (u64)&machine->sample;
	}
#undef X
}

/* The natively compiled shim. */
u64 lfn_call(const struct tcp_congestion_ops *law, struct machine *machine, u64 call)
{
	struct sock *sk = (struct sock *)&machine->tp;
	const u64 *context = machine->context;

	switch (call) {
	case INIT:
		law->init(sk);
		return 0;
	case PKTS_ACKED:
		law->pkts_acked(sk, &machine->sample.ack);
		return 0;
	case CONG_AVOID:
		law->cong_avoid(sk, context[1], context[2]);
		return 0;
	case SSTHRESH:
		return law->ssthresh(sk);
	case CWND_EVENT:
		law->cwnd_event(sk, context[1]);
		return 0;
	case SET_STATE:
		law->set_state(sk, context[1]);
		return 0;
	case UNDO_CWND:
		return law->undo_cwnd(sk);
	case CONG_CONTROL:
		law->cong_control(sk, context[1], context[2], &machine->sample.rate);
		return 0;
	}
	return 0;
}

/* Copies the state after the call. */
void lfn_take(struct machine *machine, struct image *image)
{
	const struct tcp_sock *tp = &machine->tp;
	const struct sock *sk = (const struct sock *)tp;
	u32 i;

#define X(field) image->field = sk->field;
	SOCK_FIELDS(X)
#undef X
#define X(field) image->field = tp->field;
	TCP_FIELDS(X)
#undef X
	image->rtt_min_us = tp->rtt_min.s[0].v;
	image->ca_state = tp->inet_conn.icsk_ca_state;
	image->is_cwnd_limited = tp->is_cwnd_limited;
	image->ack_pending = tp->inet_conn.icsk_ack.pending;
	for (i = 0; i < PRIVATE_WORDS; i++)
		image->icsk_ca_priv[i] = tp->inet_conn.icsk_ca_priv[i];
	image->has_flow = machine->has_flow;
	image->flow = machine->flow;
}
