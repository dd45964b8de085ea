/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The kernel types that the shim reads, by hand instead of a generated vmlinux.h (3 MB).
 *
 * preserve_access_index makes the loader find each field's place in the running kernel, so order
 * and gaps do not matter; names do. Fields of one struct may be added freely.
 */
#ifndef LFN_MINIMAL_BPF_H
#define LFN_MINIMAL_BPF_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed int __s32;
typedef signed long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;

enum { BPF_MAP_TYPE_SK_STORAGE = 24 };
enum { BPF_F_NO_PREALLOC = 1, BPF_SK_STORAGE_GET_F_CREATE = 1 };

enum tcp_ca_state { TCP_CA_Open, TCP_CA_Disorder, TCP_CA_CWR, TCP_CA_Recovery, TCP_CA_Loss };
enum tcp_ca_event {
	CA_EVENT_TX_START,
	CA_EVENT_CWND_RESTART,
	CA_EVENT_COMPLETE_CWR,
	CA_EVENT_LOSS,
	CA_EVENT_ECN_NO_CE,
	CA_EVENT_ECN_IS_CE,
};
#define TCP_INFINITE_SSTHRESH 0x7fffffff
enum { SK_PACING_NONE, SK_PACING_NEEDED };
enum { TCP_ECN_DEMAND_CWR = 4 }; /* of ecn_flags: ACKs have ECE */
enum { ICSK_ACK_NOW = 16 };

enum { TCP_CONG_NON_RESTRICTED = 1, TCP_CONG_NEEDS_ECN = 2 };

#ifdef __bpf__
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
#endif

struct sock {
	u32 sk_pacing_status;
	unsigned long sk_pacing_rate; /* bytes/s */
	unsigned long sk_max_pacing_rate;
};

struct inet_sock {
	struct sock sk;
};

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	u8 icsk_ca_state : 5;
	struct {
		u8 pending;
	} icsk_ack;
	u64 icsk_ca_priv[13];
};

struct minmax_sample {
	u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u64 tcp_mstamp; /* us, of the packet or timer being handled */
	u64 tcp_wstamp_ns; /* earliest departure of the next segment, for pacing */
	struct minmax rtt_min; /* us */
	u32 srtt_us; /* times 8 */
	u32 mss_cache;
	u32 snd_una, snd_nxt, high_seq;
	u32 snd_cwnd, snd_cwnd_cnt, snd_cwnd_clamp, snd_ssthresh;
	u32 prior_cwnd, prior_ssthresh;
	u32 packets_out, sacked_out, lost_out, retrans_out, max_packets_out;
	u32 delivered, delivered_ce, lost;
	u32 app_limited; /* delivered until which samples are app-limited; 0: they are not */
	u8 is_cwnd_limited : 1;
	u8 ecn_flags;
	u32 rcv_nxt;
	u32 rcv_wup; /* rcv_nxt at the last ACK */
};

struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us;
};

struct rate_sample {
	u32 prior_in_flight;
	s32 delivered; /* over the interval */
	long interval_us;
	long rtt_us;
	int losses;
	u32 acked_sacked;
	_Bool is_app_limited;
};

#ifdef __bpf__
#pragma clang attribute pop
#endif

/* The members that the shim fills; the loader matches them by name. */
struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event event);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	void (*cong_control)(struct sock *sk, u32 ack, int flag, const struct rate_sample *sample);
	u32 (*undo_cwnd)(struct sock *sk);
	void (*init)(struct sock *sk);
	u32 flags;
	char name[16];
};

#endif
