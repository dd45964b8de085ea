// SPDX-License-Identifier: GPL-2.0
/*
 * lfnlink: a link. Any queueing discipline is its queue; a serialiser of an exact rate that may
 * change at any time takes packets from it one at a time; then packets are lost, held up or
 * duplicated by lists of their numbers, and propagate, some with a random addition to the delay. Which are lost is
 * decided when they join the queue. Virtual time makes every event exact.
 *
 * The packet in service has left the queue: a queue of N packets holds N besides it.
 * At a change of rate the packet in service goes on with what remains of it. Where the delay
 * becomes shorter, packets overtake those under way.
 *
 * A connection whose host has such a link at its device keeps the window of its route as the largest that it
 * advertises; Linux itself forgets it at the first full segment.
 */
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/skbuff.h>
#include <linux/ip.h>
#include <linux/tcp.h>
#include <net/netlink.h>
#include <net/dst.h>
#include <net/pkt_sched.h>
#include <net/tcp.h>
#include "lfndual.h"
#include "lfnlink.h"

/* Chooses packets by the gaps between them. */
struct choice {
	u32 *gaps;
	u32 count, next; /* the next gap, which is as many as were drawn before */
	u32 left; /* packets to pass before the next that is chosen */
};

struct link {
	struct Qdisc *queue;
	struct qdisc_watchdog watchdog;
	u64 rate_bps, delay_ns, hold_ns, jitter_ns;
	u64 draws; /* state of xorshift64 */
	bool acks, in_order;
	u64 last_ns; /* arrival of the data packet before, where jitter keeps the order */
	struct choice lost, held, duplicated, unopened;

	struct sk_buff *served;
	u64 left_bits_ns; /* of the packet in service: bits times 10^9 */
	u64 since_ns;	  /* left_bits_ns held then */

	struct sk_buff_head wire; /* in order of arrival */
};

struct on_wire {
	u64 arrives_ns;
};

static struct on_wire *on_wire(const struct sk_buff *skb)
{
	return (struct on_wire *)qdisc_skb_cb(skb)->data;
}

static bool chooses(struct choice *choice)
{
	if (choice->next >= choice->count)
		return false;
	if (choice->left) {
		choice->left--;
		return false;
	}
	choice->next++;
	if (choice->next < choice->count)
		choice->left = choice->gaps[choice->next];
	return true;
}

static int extend(struct choice *choice, const struct nlattr *gaps)
{
	u32 more = nla_len(gaps) / sizeof(u32);
	u32 *all = kvmalloc_array(choice->count + more, sizeof(u32), GFP_KERNEL);

	if (!all)
		return -ENOMEM;
	if (choice->count)
		memcpy(all, choice->gaps, choice->count * sizeof(u32));
	memcpy(all + choice->count, nla_data(gaps), more * sizeof(u32));
	if (choice->next >= choice->count && choice->next < choice->count + more)
		choice->left = all[choice->next];
	kvfree(choice->gaps);
	choice->gaps = all;
	choice->count += more;
	return 0;
}

/* Forgets the list; where one was under way, its pending gap has been drawn. */
static void forget(struct choice *choice)
{
	if (choice->next < choice->count)
		choice->next++;
	kvfree(choice->gaps);
	choice->gaps = NULL;
	choice->count = 0;
}

enum kind { OTHER, HANDSHAKE, DATA, ACK };

/* ARP and ICMP are other packets. A sender sends no ACK but that of its handshake. Datagrams have payload. */
static enum kind kind(struct sk_buff *skb, bool acks)
{
	const struct iphdr *ip = ip_hdr(skb);
	const struct tcphdr *tcp;

	if (skb->protocol == htons(ETH_P_IP) && ip->protocol == IPPROTO_UDP)
		return DATA;
	if (skb->protocol != htons(ETH_P_IP) || ip->protocol != IPPROTO_TCP)
		return OTHER;
	tcp = (const struct tcphdr *)((const u8 *)ip + ip->ihl * 4);
	if (ntohs(ip->tot_len) > ip->ihl * 4 + tcp->doff * 4)
		return DATA;
	return tcp->syn || !acks ? HANDSHAKE : ACK;
}

/* Inserts a packet by its arrival time; packets with equal times keep their order. */
static void propagate(struct link *link, struct sk_buff *skb, u64 arrives_ns)
{
	struct sk_buff *before;

	on_wire(skb)->arrives_ns = arrives_ns;
	skb_queue_reverse_walk(&link->wire, before) {
		if (on_wire(before)->arrives_ns <= arrives_ns) {
			__skb_queue_after(&link->wire, before, skb);
			return;
		}
	}
	__skb_queue_head(&link->wire, skb);
}

/* Uniform from 0 to below `limit_ns`, which is less than 2^32 (xorshift64, Marsaglia 2003). */
static u64 drawn(struct link *link, u64 limit_ns)
{
	link->draws ^= link->draws << 13;
	link->draws ^= link->draws >> 7;
	link->draws ^= link->draws << 17;
	return (link->draws >> 32) * limit_ns >> 32;
}

/* Whether the lists of lost packets, or of those held up and duplicated, count packets of the kind. */
static bool counts(const struct link *link, enum kind it)
{
	return link->acks ? it == ACK || it == HANDSHAKE : it == DATA;
}

/* Marks a packet that joins the queue and will be lost behind it. */
static void choose(struct link *link, struct sk_buff *skb)
{
	enum kind it = kind(skb, link->acks);
	bool unopened = it == HANDSHAKE && chooses(&link->unopened);

	skb->mark = (counts(link, it) && chooses(&link->lost)) || unopened;
}

/* The packet in service has left the serialiser at the time given. */
static void depart(struct Qdisc *sch, u64 at_ns)
{
	struct link *link = qdisc_priv(sch);
	struct sk_buff *skb = link->served, *twin;
	u64 arrives_ns = at_ns + link->delay_ns;

	link->served = NULL;
	if (link->jitter_ns && kind(skb, link->acks) == DATA) {
		arrives_ns += drawn(link, link->jitter_ns);
		if (link->in_order)
			arrives_ns = link->last_ns = max(link->last_ns, arrives_ns);
	}
	if (skb->mark) {
		sch->q.qlen--;
		sch->qstats.overlimits++; /* counts random losses, drops being the queue's */
		consume_skb(skb);
		return;
	}
	if (counts(link, kind(skb, link->acks))) {
		if (chooses(&link->held))
			arrives_ns += link->hold_ns;
		if (chooses(&link->duplicated)) {
			twin = skb_clone(skb, GFP_ATOMIC);
			if (twin) {
				sch->q.qlen++;
				propagate(link, twin, arrives_ns);
			}
		}
	}
	propagate(link, skb, arrives_ns);
}

/* Brings the serialiser to the present; when it is next done, or 0 if nothing will be. */
static u64 serve(struct Qdisc *sch, u64 now)
{
	struct link *link = qdisc_priv(sch);
	u64 start = now, done;
	/* Times are whole nanoseconds: of the last packet so much was served after its time, for the next one. */
	u64 late_bits_ns = 0;

	for (;;) {
		if (!link->served) {
			struct sk_buff *skb = link->queue->dequeue(link->queue);

			if (!skb)
				return 0;
			qdisc_qstats_backlog_dec(sch, skb);
			link->served = skb;
			link->left_bits_ns = 8ULL * qdisc_pkt_len(skb) * NSEC_PER_SEC + late_bits_ns;
			link->since_ns = start;
		}
		if (!link->rate_bps)
			return 0;
		done = link->since_ns + div64_u64_rem(link->left_bits_ns, link->rate_bps, &late_bits_ns);
		if (done > now)
			return done;
		depart(sch, done);
		start = done;
	}
}

static struct sk_buff *lfnlink_dequeue(struct Qdisc *sch)
{
	struct link *link = qdisc_priv(sch);
	u64 now = ktime_get_ns(), next = serve(sch, now);
	struct sk_buff *skb = skb_peek(&link->wire);

	if (skb && on_wire(skb)->arrives_ns <= now) {
		__skb_unlink(skb, &link->wire);
		sch->q.qlen--;
		qdisc_bstats_update(sch, skb);
		return skb;
	}
	if (skb && (!next || on_wire(skb)->arrives_ns < next))
		next = on_wire(skb)->arrives_ns;
	if (next)
		qdisc_watchdog_schedule_ns(&link->watchdog, next);
	return NULL;
}

/* The connection that sends the packet advertises at most the window of its route. */
static void keep_window(struct sock *sk)
{
	const struct dst_entry *route;
	u32 most;

	if (!sk || !sk_fullsock(sk) || sk->sk_protocol != IPPROTO_TCP)
		return;
	route = __sk_dst_get(sk);
	most = route ? dst_metric(route, RTAX_WINDOW) : 0;
	if (most && tcp_sk(sk)->window_clamp > most)
		tcp_set_window_clamp(sk, most);
}

static int lfnlink_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct link *link = qdisc_priv(sch);
	unsigned int bytes = qdisc_pkt_len(skb);
	int verdict;

	keep_window(skb->sk);
	skb->mark = 0;
	serve(sch, ktime_get_ns());
	verdict = qdisc_enqueue(skb, link->queue, to_free);
	/* A queue that drops a packet of this flow may have dropped this one, unless it drops at its head alone. */
	if (verdict == NET_XMIT_SUCCESS ||
	    (verdict == NET_XMIT_CN && !strcmp(link->queue->ops->id, "pfifo_head_drop")))
		choose(link, skb);
	if (verdict != NET_XMIT_SUCCESS) {
		if (net_xmit_drop_count(verdict))
			qdisc_qstats_drop(sch);
		return verdict;
	}
	sch->qstats.backlog += bytes;
	sch->q.qlen++;
	return NET_XMIT_SUCCESS;
}

static const struct nla_policy policy[LFNLINK_MAX + 1] = {
	[LFNLINK_RATE] = { .type = NLA_U64 },	[LFNLINK_DELAY] = { .type = NLA_U64 },
	[LFNLINK_HOLD] = { .type = NLA_U64 },	[LFNLINK_JITTER] = { .type = NLA_U64 },
	[LFNLINK_LOST] = { .type = NLA_BINARY }, [LFNLINK_HELD] = { .type = NLA_BINARY },
	[LFNLINK_DUPLICATED] = { .type = NLA_BINARY }, [LFNLINK_ACKS] = { .type = NLA_FLAG },
	[LFNLINK_UNOPENED] = { .type = NLA_BINARY }, [LFNLINK_SEED] = { .type = NLA_U64 },
	[LFNLINK_OTHER_LOSSES] = { .type = NLA_FLAG }, [LFNLINK_IN_ORDER] = { .type = NLA_FLAG },
};

/* The packet in service has been served at the old rate until now. */
static void change_rate(struct Qdisc *sch, u64 rate_bps)
{
	struct link *link = qdisc_priv(sch);
	u64 now = ktime_get_ns();

	serve(sch, now);
	if (link->served) {
		link->left_bits_ns -= min(link->left_bits_ns, (now - link->since_ns) * link->rate_bps);
		link->since_ns = now;
	}
	link->rate_bps = rate_bps;
	lfndual_set_rate(link->queue, rate_bps);
}

static int lfnlink_change(struct Qdisc *sch, struct nlattr *options, struct netlink_ext_ack *extack)
{
	struct link *link = qdisc_priv(sch);
	struct nlattr *said[LFNLINK_MAX + 1];
	int error = nla_parse_nested(said, LFNLINK_MAX, options, policy, extack);

	if (error)
		return error;
	sch_tree_lock(sch);
	if (said[LFNLINK_RATE])
		change_rate(sch, nla_get_u64(said[LFNLINK_RATE]));
	if (said[LFNLINK_DELAY])
		link->delay_ns = nla_get_u64(said[LFNLINK_DELAY]);
	if (said[LFNLINK_HOLD])
		link->hold_ns = nla_get_u64(said[LFNLINK_HOLD]);
	if (said[LFNLINK_JITTER])
		link->jitter_ns = min(nla_get_u64(said[LFNLINK_JITTER]), (u64)U32_MAX);
	if (said[LFNLINK_SEED]) /* an odd factor: no other seed gives the state 0, which would stay */
		link->draws = (nla_get_u64(said[LFNLINK_SEED]) + 1) * 0x9e3779b97f4a7c15ULL;
	if (said[LFNLINK_ACKS])
		link->acks = true;
	if (said[LFNLINK_IN_ORDER])
		link->in_order = true;
	if (said[LFNLINK_OTHER_LOSSES]) {
		forget(&link->lost);
		forget(&link->unopened);
	}
	sch_tree_unlock(sch);
	/* Lists are extended before packets come, or in one instant of virtual time. */
	if (said[LFNLINK_LOST])
		error = extend(&link->lost, said[LFNLINK_LOST]);
	if (!error && said[LFNLINK_HELD])
		error = extend(&link->held, said[LFNLINK_HELD]);
	if (!error && said[LFNLINK_DUPLICATED])
		error = extend(&link->duplicated, said[LFNLINK_DUPLICATED]);
	if (!error && said[LFNLINK_UNOPENED])
		error = extend(&link->unopened, said[LFNLINK_UNOPENED]);
	/* The old time of the next event no longer holds. */
	qdisc_watchdog_schedule_ns(&link->watchdog, ktime_get_ns());
	return error;
}

static int lfnlink_init(struct Qdisc *sch, struct nlattr *options, struct netlink_ext_ack *extack)
{
	struct link *link = qdisc_priv(sch);

	if (!options)
		return -EINVAL;
	qdisc_watchdog_init(&link->watchdog, sch);
	__skb_queue_head_init(&link->wire);
	link->draws = 0x9e3779b97f4a7c15ULL;
	link->queue = fifo_create_dflt(sch, &pfifo_qdisc_ops, 1000, extack);
	if (IS_ERR(link->queue)) {
		int error = PTR_ERR(link->queue);

		link->queue = &noop_qdisc;
		return error;
	}
	qdisc_hash_add(link->queue, true);
	return lfnlink_change(sch, options, extack);
}

static void lfnlink_reset(struct Qdisc *sch)
{
	struct link *link = qdisc_priv(sch);

	qdisc_watchdog_cancel(&link->watchdog);
	__skb_queue_purge(&link->wire);
	kfree_skb(link->served);
	link->served = NULL;
	qdisc_reset(link->queue);
}

static void lfnlink_destroy(struct Qdisc *sch)
{
	struct link *link = qdisc_priv(sch);

	qdisc_watchdog_cancel(&link->watchdog);
	if (link->queue)
		qdisc_put(link->queue);
	kvfree(link->lost.gaps);
	kvfree(link->held.gaps);
	kvfree(link->duplicated.gaps);
	kvfree(link->unopened.gaps);
}

static int lfnlink_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct nlattr *nest = nla_nest_start_noflag(skb, TCA_OPTIONS);

	return nest ? nla_nest_end(skb, nest) : -EMSGSIZE;
}

/* One class, the queue. */
static int lfnlink_graft(struct Qdisc *sch, unsigned long class, struct Qdisc *new,
			 struct Qdisc **old, struct netlink_ext_ack *extack)
{
	struct link *link = qdisc_priv(sch);

	*old = qdisc_replace(sch, new ? new : &noop_qdisc, &link->queue);
	lfndual_set_rate(link->queue, link->rate_bps);
	return 0;
}

static struct Qdisc *lfnlink_leaf(struct Qdisc *sch, unsigned long class)
{
	return ((struct link *)qdisc_priv(sch))->queue;
}

static unsigned long lfnlink_find(struct Qdisc *sch, u32 classid)
{
	return 1;
}

static void lfnlink_walk(struct Qdisc *sch, struct qdisc_walker *walker)
{
	if (!walker->stop)
		tc_qdisc_stats_dump(sch, 1, walker);
}

static int lfnlink_dump_class(struct Qdisc *sch, unsigned long class, struct sk_buff *skb,
			      struct tcmsg *message)
{
	struct link *link = qdisc_priv(sch);

	message->tcm_handle |= TC_H_MIN(1);
	message->tcm_info = link->queue->handle;
	return 0;
}

/* The queue drops at its head and tells its parents: nothing else to do for a class of its own. */
static void lfnlink_qlen_notify(struct Qdisc *sch, unsigned long class)
{
}

static const struct Qdisc_class_ops class_ops = {
	.graft = lfnlink_graft,
	.leaf = lfnlink_leaf,
	.qlen_notify = lfnlink_qlen_notify,
	.find = lfnlink_find,
	.walk = lfnlink_walk,
	.dump = lfnlink_dump_class,
};

static struct Qdisc_ops ops __read_mostly = {
	.id = LFNLINK_KIND,
	.cl_ops = &class_ops,
	.priv_size = sizeof(struct link),
	.enqueue = lfnlink_enqueue,
	.dequeue = lfnlink_dequeue,
	.peek = qdisc_peek_dequeued,
	.init = lfnlink_init,
	.reset = lfnlink_reset,
	.destroy = lfnlink_destroy,
	.change = lfnlink_change,
	.dump = lfnlink_dump,
	.owner = THIS_MODULE,
};

static int __init lfnlink_register(void)
{
	return register_qdisc(&ops);
}
module_init(lfnlink_register)
MODULE_LICENSE("GPL");
