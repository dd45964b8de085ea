/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A law as a congestion control that is built into this kernel: kernel/law.bpf.h, which calls the law's header, with
 * Linux's own types in place of those that it has for BPF. linux/edit gives a socket LFN_FLOW_BYTES more of private
 * state, behind what laws have; there is what BPF keeps in a map.
 */
#ifndef LFN_BUILTIN_H
#define LFN_BUILTIN_H

#include <linux/init.h>
#include <linux/kernel.h>
#include <net/tcp.h>
#include <uapi/linux/bpf.h>

/* In place of minimal.bpf.h and native.h. */
#define LFN_MINIMAL_BPF_H
#define LFN_NATIVE_H
#define SEC(name) static __attribute__((unused))
#define BPF_PROG(name, ...) name(__VA_ARGS__)
#define BPF_CORE_READ_BITFIELD(object, field) ((object)->field)
#undef __uint
#define __uint(name, value) int (*name)[value]
#undef __type
#define __type(name, type) type *name
/* net/tcp.h has another. */
#define tcp_init lfn_tcp_init

#define LFN_BPF
#include "law.h"

#define LFN_FLOW_BYTES (ICSK_CA_PRIV_SIZE - LAW_PRIVATE_BYTES)

/* Linux zeroes the area when a socket gets a law: the first word tells whether it was asked for since. */
static inline void *lfn_storage(struct sock *sk, u64 flags)
{
	u64 *area = (u64 *)inet_csk_ca(sk) + LAW_PRIVATE_BYTES / sizeof(u64);

	if (flags & BPF_SK_STORAGE_GET_F_CREATE)
		area[0] = 1;
	return area[0] ? area + 1 : NULL;
}
#define bpf_sk_storage_get(map, sk, value, flags) ((struct flow *)lfn_storage(sk, flags))

#define bpf_tcp_send_ack(tp, rcv_nxt) __tcp_send_ack((struct sock *)(tp), rcv_nxt, 0)

/* Room for one record of a call in /proc/lfn_records, or NULL. */
void *lfn_record(size_t bytes);
#define bpf_ringbuf_reserve(map, bytes, flags) lfn_record(bytes)
#define bpf_ringbuf_submit(record, flags)
#define LFN_RECORD
#include "law.bpf.h"
_Static_assert(sizeof(u64) + sizeof(struct flow) <= LFN_FLOW_BYTES, "linux/edit: icsk_ca_priv is too small");

#define LFN_BUILT_IN(law)                                          \
	static int __init lfn_register_##law(void)                 \
	{                                                          \
		return tcp_register_congestion_control(&lfn_##law); \
	}                                                          \
	late_initcall(lfn_register_##law)

#endif
