// SPDX-License-Identifier: GPL-2.0
/*
 * lfndual: DualPI2, written from RFC 9332 (appendix A), with Linux's names and scheduler. Signals are evenly spaced as in
 * the RFC, where Linux draws random numbers. The step is at least the time of some packets: LFNDUAL_FLOOR.
 *
 * /proc/lfn_queues has a line for each queue: "DEVICE p PROBABILITY" in 2^-30; "DEVICE CLASS PACKETS BYTES MARKS DROPS",
 * the class l4s or classic; and "DEVICE CLASS waited END_US PACKETS", a bin of the waiting times of packets sent.
 */
#include <linux/list.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/skbuff.h>
#include <linux/vmalloc.h>
#include <net/inet_ecn.h>
#include <net/netlink.h>
#include <net/pkt_sched.h>
#include "lfndual.h"

enum { L, C, CLASSES };
static const char *const class_names[] = { "l4s", "classic" };

/* Waiting times in us: exact below 64, then 64 bins for each power of two. */
enum { BINS_SHIFT = 6, BINS = 1 << BINS_SHIFT, ALL_BINS = BINS * 33 };

struct counts {
	u64 packets, bytes, marks, drops;
	u32 *waited;
};

struct dual {
	struct list_head list;
	u64 value[LFNDUAL_MAX + 1];
	u64 step_ns, p, next_ns, last_ns; /* p in 2^-30; the delay that the last update found */
	struct sk_buff_head queue[CLASSES];
	u64 bytes[CLASSES];
	u64 spread[CLASSES]; /* the sum of probabilities since the last signal, in 2^-60 */
	s64 credit; /* above 0 it is the turn of the Classic queue */
	struct counts counts[CLASSES];
};

static LIST_HEAD(queues);

static u64 *since_ns(const struct sk_buff *skb)
{
	return (u64 *)qdisc_skb_cb(skb)->data;
}

static u64 waited_ns(const struct dual *dual, int class, u64 now)
{
	const struct sk_buff *head = skb_peek(&dual->queue[class]);

	return head && now > *since_ns(head) ? now - *since_ns(head) : 0;
}

/* RFC 9332 figure 6, on the older of both heads. */
static void update(struct dual *dual, u64 at_ns)
{
	u64 most = dual->value[LFNDUAL_OVERFLOW] ? LFNDUAL_ONE / dual->value[LFNDUAL_COUPLING] : LFNDUAL_ONE;
	u64 delay = max(waited_ns(dual, L, at_ns), waited_ns(dual, C, at_ns));
	s64 p = dual->p, off = delay - dual->value[LFNDUAL_TARGET], more = delay - dual->last_ns;
	u64 of_off = mul_u64_u64_div_u64(abs(off), dual->value[LFNDUAL_ALPHA], NSEC_PER_SEC);
	u64 of_more = mul_u64_u64_div_u64(abs(more), dual->value[LFNDUAL_BETA], NSEC_PER_SEC);

	p += (off < 0 ? -of_off : of_off) + (more < 0 ? -of_more : of_more);
	dual->p = clamp_t(s64, p, 0, most);
	dual->last_ns = delay;
}

/* The updates due by now. */
static void catch_up(struct dual *dual, u64 now)
{
	for (; dual->next_ns <= now; dual->next_ns += dual->value[LFNDUAL_TUPDATE])
		update(dual, dual->next_ns);
}

/* Whether a packet with this probability, in 2^-60, gets a signal (RFC 9332 figure 7). */
static bool hits(struct dual *dual, int class, u64 p)
{
	const u64 one = LFNDUAL_ONE * LFNDUAL_ONE;
	u64 *sum = &dual->spread[class];

	*sum += p;
	if (*sum <= one)
		return false;
	*sum -= one;
	return true;
}

/* The L queue's own AQM (figure 5), in 2^-30. */
static u64 native(const struct dual *dual, u64 waited)
{
	u64 over = waited > dual->step_ns ? waited - dual->step_ns : 0;

	if (!over)
		return 0;
	return over >= dual->value[LFNDUAL_RAMP] ? LFNDUAL_ONE :
						   div64_u64(over * LFNDUAL_ONE, dual->value[LFNDUAL_RAMP]);
}

enum verdict { SEND, MARK, DROP };

/* The fate of a packet that has left its queue. */
static enum verdict decide(struct dual *dual, int class, const struct sk_buff *skb, u64 waited, u8 ecn)
{
	bool calm = dual->bytes[L] + dual->bytes[C] < 2 * dual->value[LFNDUAL_MTU];
	u64 p = calm ? 0 : dual->p, coupled = dual->value[LFNDUAL_COUPLING] * p;
	bool saturated = coupled >= LFNDUAL_ONE && !dual->value[LFNDUAL_OVERFLOW];

	if (class == L) {
		if (saturated && hits(dual, L, p * p))
			return DROP;
		coupled = min(max(coupled, native(dual, waited)), LFNDUAL_ONE);
		return hits(dual, L, coupled * LFNDUAL_ONE) ? MARK : SEND;
	}
	if (!hits(dual, C, p * p))
		return SEND;
	return ecn == INET_ECN_NOT_ECT || saturated ? DROP : MARK;
}

/* Not an IP packet: Not-ECT. */
static u8 field(const struct sk_buff *skb)
{
	return skb->protocol == htons(ETH_P_IP) ? ip_hdr(skb)->tos & INET_ECN_MASK : INET_ECN_NOT_ECT;
}

static void reset_credit(struct dual *dual)
{
	dual->credit = (s64)dual->value[LFNDUAL_MTU] * (2 * (s64)dual->value[LFNDUAL_PROTECTION] - 100);
}

static int turn(const struct dual *dual)
{
	if (skb_queue_empty(&dual->queue[L]) || skb_queue_empty(&dual->queue[C]))
		return skb_queue_empty(&dual->queue[L]) ? C : L;
	return dual->credit <= 0 ? L : C;
}

static struct counts *counted(struct dual *dual, int class, u64 now)
{
	static struct counts before;

	return now >= dual->value[LFNDUAL_FROM] ? &dual->counts[class] : &before;
}

static void count_waited(struct counts *counts, u64 waited_ns)
{
	u64 us = div64_u64(waited_ns, NSEC_PER_USEC);
	int shift = us < BINS ? 0 : ilog2(us) - BINS_SHIFT;

	if (counts->waited)
		counts->waited[min_t(u64, BINS * shift + (us >> shift), ALL_BINS - 1)]++;
}

static struct sk_buff *lfndual_dequeue(struct Qdisc *sch)
{
	struct dual *dual = qdisc_priv(sch);
	u64 now = ktime_get_ns();

	catch_up(dual, now);
	for (;;) {
		int class = turn(dual);
		struct counts *counts = counted(dual, class, now);
		struct sk_buff *skb = __skb_dequeue(&dual->queue[class]);
		enum verdict verdict;
		u64 waited;
		u32 bytes;

		if (!skb) {
			reset_credit(dual);
			return NULL;
		}
		bytes = qdisc_pkt_len(skb);
		waited = now - *since_ns(skb);
		dual->bytes[class] -= bytes;
		sch->q.qlen--;
		qdisc_qstats_backlog_dec(sch, skb);
		verdict = decide(dual, class, skb, waited, field(skb));
		if (verdict == DROP) {
			counts->drops++;
			qdisc_qstats_drop(sch);
			qdisc_tree_reduce_backlog(sch, 1, bytes);
			kfree_skb(skb);
			continue;
		}
		if (verdict == MARK && field(skb) != INET_ECN_CE) {
			INET_ECN_set_ce(skb);
			counts->marks++;
		}
		if (!skb_queue_empty(&dual->queue[!class]))
			dual->credit += ((s64)dual->value[LFNDUAL_PROTECTION] - (class == C ? 100 : 0)) * bytes;
		counts->packets++;
		counts->bytes += bytes;
		count_waited(counts, waited);
		qdisc_bstats_update(sch, skb);
		return skb;
	}
}

static int lfndual_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct dual *dual = qdisc_priv(sch);
	u64 now = ktime_get_ns();
	u8 ecn = field(skb);
	int class = ecn == INET_ECN_ECT_1 || ecn == INET_ECN_CE ||
				    (ecn == INET_ECN_ECT_0 && dual->value[LFNDUAL_ANY_ECT]) ?
			    L :
			    C;

	catch_up(dual, now);
	if (sch->q.qlen >= dual->value[LFNDUAL_PACKETS] ||
	    dual->bytes[L] + dual->bytes[C] + qdisc_pkt_len(skb) > dual->value[LFNDUAL_BYTES]) {
		counted(dual, class, now)->drops++;
		qdisc_qstats_overlimit(sch);
		return qdisc_drop(skb, sch, to_free);
	}
	*since_ns(skb) = now;
	dual->bytes[class] += qdisc_pkt_len(skb);
	__skb_queue_tail(&dual->queue[class], skb);
	sch->q.qlen++;
	qdisc_qstats_backlog_inc(sch, skb);
	return NET_XMIT_SUCCESS;
}

/* The link behind the queue has a rate, from now on. */
void lfndual_set_rate(struct Qdisc *sch, u64 rate_bps)
{
	struct dual *dual = qdisc_priv(sch);
	u64 bits;

	if (strcmp(sch->ops->id, LFNDUAL_KIND))
		return;
	bits = 8 * dual->value[LFNDUAL_FLOOR] * dual->value[LFNDUAL_MTU];
	dual->step_ns = max(dual->value[LFNDUAL_STEP], div64_u64(bits * NSEC_PER_SEC, max_t(u64, rate_bps, 1)));
}

static struct nla_policy policy[LFNDUAL_MAX + 1];

static int lfndual_init(struct Qdisc *sch, struct nlattr *options, struct netlink_ext_ack *extack)
{
	struct dual *dual = qdisc_priv(sch);
	struct nlattr *said[LFNDUAL_MAX + 1];
	int error = options ? nla_parse_nested(said, LFNDUAL_MAX, options, policy, extack) : -EINVAL;

	INIT_LIST_HEAD(&dual->list);
	for (int class = 0; class < CLASSES; class++)
		__skb_queue_head_init(&dual->queue[class]);
	if (error)
		return error;
	for (int i = LFNDUAL_UNSPEC + 1; i < LFNDUAL_END; i++) {
		if (!said[i])
			return -EINVAL;
		dual->value[i] = nla_get_u64(said[i]);
	}
	if (!dual->value[LFNDUAL_TUPDATE] || !dual->value[LFNDUAL_COUPLING])
		return -EINVAL;
	for (int class = 0; class < CLASSES; class++) {
		dual->counts[class].waited = vzalloc(ALL_BINS * sizeof(u32));
		if (!dual->counts[class].waited)
			return -ENOMEM;
	}
	dual->next_ns = ktime_get_ns() + dual->value[LFNDUAL_TUPDATE];
	dual->step_ns = dual->value[LFNDUAL_STEP];
	reset_credit(dual);
	list_add_tail(&dual->list, &queues);
	return 0;
}

static void lfndual_reset(struct Qdisc *sch)
{
	struct dual *dual = qdisc_priv(sch);

	for (int class = 0; class < CLASSES; class++) {
		__skb_queue_purge(&dual->queue[class]);
		dual->bytes[class] = 0;
	}
	sch->q.qlen = 0;
	sch->qstats.backlog = 0;
}

static void lfndual_destroy(struct Qdisc *sch)
{
	struct dual *dual = qdisc_priv(sch);

	list_del(&dual->list);
	for (int class = 0; class < CLASSES; class++)
		vfree(dual->counts[class].waited);
}

/* No options: tc, which does not know this queue, prints what it has of all. */
static int lfndual_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	return skb->len;
}

/* The first delay in us beyond a bin. */
static u64 bin_end_us(int bin)
{
	int shift = bin < 2 * BINS ? 0 : bin / BINS - 1;

	return (u64)(bin - BINS * shift + 1) << shift;
}

static int show(struct seq_file *out, void *unused)
{
	struct dual *dual;

	list_for_each_entry(dual, &queues, list) {
		const char *device = qdisc_dev(qdisc_from_priv(dual))->name;

		seq_printf(out, "%s p %llu\n", device, dual->p);
		for (int class = 0; class < CLASSES; class++) {
			const struct counts *of = &dual->counts[class];

			seq_printf(out, "%s %s %llu %llu %llu %llu\n", device, class_names[class], of->packets,
				   of->bytes, of->marks, of->drops);
			for (int bin = 0; bin < ALL_BINS; bin++)
				if (of->waited[bin])
					seq_printf(out, "%s %s waited %llu %u\n", device, class_names[class],
						   bin_end_us(bin), of->waited[bin]);
		}
	}
	return 0;
}

static struct Qdisc_ops ops __read_mostly = {
	.id = LFNDUAL_KIND,
	.priv_size = sizeof(struct dual),
	.enqueue = lfndual_enqueue,
	.dequeue = lfndual_dequeue,
	.peek = qdisc_peek_dequeued,
	.init = lfndual_init,
	.reset = lfndual_reset,
	.destroy = lfndual_destroy,
	.dump = lfndual_dump,
	.owner = THIS_MODULE,
};

static int __init lfndual_register(void)
{
	for (int i = LFNDUAL_UNSPEC + 1; i < LFNDUAL_END; i++)
		policy[i].type = NLA_U64;
	return proc_create_single("lfn_queues", 0400, NULL, show) ? register_qdisc(&ops) : -ENOMEM;
}
late_initcall(lfndual_register);
MODULE_LICENSE("GPL");
