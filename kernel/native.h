/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The parts of BPF that law.bpf.h needs when compiled as ordinary C, with the structs of minimal.bpf.h
 * in place of a kernel's: programs are functions, and the test that calls them owns the storage. */
#ifndef LFN_NATIVE_H
#define LFN_NATIVE_H

#define SEC(name) static __attribute__((unused))
#define BPF_PROG(name, ...) name(__VA_ARGS__)
#define BPF_CORE_READ_BITFIELD(object, field) ((object)->field)
#define __always_inline inline __attribute__((always_inline))
#define __uint(name, value) int (*name)[value]
#define __type(name, type) type *name

/* The storage of the socket that is in hand, as bpf_sk_storage_get has it. */
void *lfn_storage(unsigned long long flags);
#define bpf_sk_storage_get(map, sk, value, flags) ((struct flow *)lfn_storage(flags))

/* Sends an ACK of all before `rcv_nxt` for the socket that is in hand. */
void lfn_send_ack(unsigned int rcv_nxt);
#define bpf_tcp_send_ack(tp, rcv_nxt) lfn_send_ack(rcv_nxt)

#endif
