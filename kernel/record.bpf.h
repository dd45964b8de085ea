/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The state before and after a call of Linux, as a record: for the comparison of Linux with the
 * same shim run elsewhere (crates/conformance).
 *
 * With LFN_RECORD every call writes one record into a ring buffer. All numbers stand in fields of
 * 64 bits, so that a record means the same whatever a kernel's own layout is.
 */
#ifndef LFN_RECORD_BPF_H
#define LFN_RECORD_BPF_H

/* Every field of Linux's that the shim reads or writes. */
#define SOCK_FIELDS(X) X(sk_pacing_status) X(sk_pacing_rate) X(sk_max_pacing_rate)
#define TCP_FIELDS(X)                                                                           \
	X(tcp_mstamp) X(tcp_wstamp_ns) X(srtt_us) X(mss_cache) X(snd_una) X(snd_nxt) X(high_seq) X(snd_cwnd)     \
	X(snd_cwnd_cnt) X(snd_cwnd_clamp) X(snd_ssthresh) X(prior_cwnd) X(prior_ssthresh)       \
	X(packets_out) X(sacked_out) X(lost_out) X(retrans_out) X(max_packets_out) X(delivered) \
	X(delivered_ce) X(lost) X(app_limited) X(ecn_flags) X(rcv_nxt) X(rcv_wup)
#define ACK_SAMPLE(X) X(pkts_acked, 0) X(rtt_us, 1)
#define RATE_SAMPLE(X)                                                                  \
	X(prior_in_flight, 0) X(delivered, 1) X(interval_us, 2) X(rtt_us, 3) X(losses, 4) \
	X(acked_sacked, 5) X(is_app_limited, 6)

#define PRIVATE_WORDS (LAW_PRIVATE_BYTES / sizeof(u64))

struct image {
#define X(field) u64 field;
	SOCK_FIELDS(X)
	TCP_FIELDS(X)
#undef X
	u64 rtt_min_us;
	u64 ca_state;
	u64 is_cwnd_limited;
	u64 ack_pending;
	u64 has_flow; /* init was called */
	u64 icsk_ca_priv[PRIVATE_WORDS];
	struct flow flow;
};

enum call { INIT, PKTS_ACKED, CONG_AVOID, SSTHRESH, CWND_EVENT, SET_STATE, UNDO_CWND, CONG_CONTROL };

struct record {
	u64 socket;   /* tells connections apart */
	u64 sequence; /* of the record, from 0: a gap is a record that found no room */
	u64 call;
	u64 arguments[2]; /* after the socket, where they are numbers */
	u64 sample[7];    /* what the argument that is a pointer points to */
	u64 result;
	struct image before;
	struct image after;
};

#if defined(__bpf__) || defined(__KERNEL__)
#ifdef __bpf__
enum { BPF_MAP_TYPE_RINGBUF = 27 };
#endif
SEC(".maps") struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 26);
} records;

static u64 record_sequence;

static __always_inline void take_image(struct image *image, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct flow *flow = bpf_sk_storage_get(&flows, sk, 0, 0);
	u32 i;

#define X(field) image->field = sk->field;
	SOCK_FIELDS(X)
#undef X
#define X(field) image->field = tp->field;
	TCP_FIELDS(X)
#undef X
	image->rtt_min_us = tp->rtt_min.s[0].v;
	image->ca_state = BPF_CORE_READ_BITFIELD((struct inet_connection_sock *)sk, icsk_ca_state);
	image->is_cwnd_limited = BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited);
	image->ack_pending = ((struct inet_connection_sock *)sk)->icsk_ack.pending;
#ifdef __bpf__
#pragma unroll
#endif
	for (i = 0; i < PRIVATE_WORDS; i++)
		image->icsk_ca_priv[i] = ((struct inet_connection_sock *)sk)->icsk_ca_priv[i];
	image->has_flow = !!flow;
	if (flow)
		image->flow = *flow;
	else
		image->flow = (struct flow){ 0 };
}

#define RECORD_CALL(number, sk, first, second)                                           \
	struct record *record = bpf_ringbuf_reserve(&records, sizeof(*record), 0);       \
	u64 sequence = __sync_fetch_and_add(&record_sequence, 1);                        \
	if (record) {                                                                    \
		record->socket = (u64)sk;                                                \
		record->sequence = sequence;                                             \
		record->call = number;                                                   \
		record->arguments[0] = first;                                            \
		record->arguments[1] = second;                                           \
		__builtin_memset(record->sample, 0, sizeof(record->sample));             \
		take_image(&record->before, sk);                                         \
	}
#define COPY_SAMPLE(field, i) record->sample[i] = sample->field;
#define RECORD_SAMPLE(fields, sample)       \
	if (record) {                       \
		fields(COPY_SAMPLE)         \
	}
#define RECORD_RESULT(sk, value)                 \
	if (record) {                            \
		record->result = value;          \
		take_image(&record->after, sk);  \
		bpf_ringbuf_submit(record, 0);   \
	}
#endif

#endif
