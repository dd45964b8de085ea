// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <net/if.h>
#include <sys/socket.h>
#include <linux/gen_stats.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

#include "fail.h"
#include "lfndual.h"
#include "lfnlink.h"
#include "qdisc.h"

enum { ROOT_HANDLE = 0x10000, QUEUE_HANDLE = 0x100000, QUEUE_PARENT = 0x10001 };

struct message {
	struct nlmsghdr header;
	struct tcmsg tc;
	char attributes[65536];
};

static struct message message;

static void begin(int type, int flags, int device_index)
{
	memset(&message, 0, offsetof(struct message, attributes));
	message.header.nlmsg_len = NLMSG_LENGTH(sizeof message.tc);
	message.header.nlmsg_type = type;
	message.header.nlmsg_flags = NLM_F_REQUEST | flags;
	message.tc.tcm_family = AF_UNSPEC;
	message.tc.tcm_ifindex = device_index;
	message.tc.tcm_parent = TC_H_ROOT;
	message.tc.tcm_handle = ROOT_HANDLE;
}

static struct rtattr *append(int type, const void *data, size_t bytes)
{
	size_t at = NLMSG_ALIGN(message.header.nlmsg_len);
	struct rtattr *attribute = (struct rtattr *)((char *)&message + at);

	attribute->rta_type = type;
	attribute->rta_len = RTA_LENGTH(bytes);
	if (bytes)
		memcpy(RTA_DATA(attribute), data, bytes);
	message.header.nlmsg_len = at + RTA_ALIGN(attribute->rta_len);
	return attribute;
}

static void append_u64(int type, uint64_t value)
{
	append(type, &value, sizeof value);
}

static void end(struct rtattr *nest)
{
	nest->rta_len = (char *)&message + message.header.nlmsg_len - (char *)nest;
}

/* Sends the message, and ends the program if the kernel refuses it. */
static void commit(int socket, const char *what)
{
	struct {
		struct nlmsghdr header;
		struct nlmsgerr error;
		char more[4096];
	} answer;

	message.header.nlmsg_flags |= NLM_F_ACK;
	if (send(socket, &message, message.header.nlmsg_len, 0) < 0 ||
	    recv(socket, &answer, sizeof answer, 0) < 0)
		fail("%s: %m", what);
	if (answer.header.nlmsg_type == NLMSG_ERROR && answer.error.error)
		fail("%s: %s", what, strerror(-answer.error.error));
}

int qdisc_open(void)
{
	int socket_fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (socket_fd < 0)
		fail("netlink: %m");
	return socket_fd;
}

static void extend(int socket, int device_index, int type, const struct gaps *gaps)
{
	for (int from = 0; from < gaps->count; from += LFNLINK_GAPS) {
		int count = gaps->count - from < LFNLINK_GAPS ? gaps->count - from : LFNLINK_GAPS;
		struct rtattr *nest;

		begin(RTM_NEWQDISC, 0, device_index);
		nest = append(TCA_OPTIONS | NLA_F_NESTED, NULL, 0);
		append(type, gaps->values + from, count * sizeof *gaps->values);
		end(nest);
		commit(socket, "numbers of chosen packets");
	}
}

void qdisc_add(int socket, const char *device, const struct link *link, int counts_acks)
{
	int device_index = if_nametoindex(device);
	struct rtattr *nest;

	begin(RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE, device_index);
	append(TCA_KIND, LFNLINK_KIND, sizeof LFNLINK_KIND);
	nest = append(TCA_OPTIONS | NLA_F_NESTED, NULL, 0);
	append_u64(LFNLINK_RATE, link->rate_bps);
	append_u64(LFNLINK_DELAY, link->delay_ns);
	append_u64(LFNLINK_HOLD, link->hold_ns);
	append_u64(LFNLINK_JITTER, link->jitter_ns);
	append_u64(LFNLINK_SEED, link->jitter_seed);
	if (link->jitter_in_order)
		append(LFNLINK_IN_ORDER, NULL, 0);
	if (counts_acks)
		append(LFNLINK_ACKS, NULL, 0);
	end(nest);
	commit(socket, device);
	extend(socket, device_index, LFNLINK_LOST, &link->lost);
	extend(socket, device_index, LFNLINK_HELD, &link->held);
	extend(socket, device_index, LFNLINK_DUPLICATED, &link->duplicated);
	extend(socket, device_index, LFNLINK_UNOPENED, &link->unopened);
}

static const char *const dual_words[LFNDUAL_END] = {
	[LFNDUAL_PACKETS] = "packets",	     [LFNDUAL_BYTES] = "bytes",
	[LFNDUAL_TARGET] = "target_ns",	     [LFNDUAL_TUPDATE] = "tupdate_ns",
	[LFNDUAL_ALPHA] = "alpha",	     [LFNDUAL_BETA] = "beta",
	[LFNDUAL_COUPLING] = "coupling",     [LFNDUAL_STEP] = "step_ns",
	[LFNDUAL_RAMP] = "ramp_ns",	     [LFNDUAL_FLOOR] = "floor",
	[LFNDUAL_OVERFLOW] = "overflow",     [LFNDUAL_PROTECTION] = "protection",
	[LFNDUAL_ANY_ECT] = "any_ect",	     [LFNDUAL_MTU] = "mtu",
	[LFNDUAL_FROM] = "from_us",
};

void qdisc_dual(int socket, const char *device, const char *words)
{
	char *text = strdup(words), *rest = text, *word;
	struct rtattr *nest;

	begin(RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE, if_nametoindex(device));
	message.tc.tcm_parent = QUEUE_PARENT;
	message.tc.tcm_handle = QUEUE_HANDLE;
	append(TCA_KIND, LFNDUAL_KIND, sizeof LFNDUAL_KIND);
	nest = append(TCA_OPTIONS | NLA_F_NESTED, NULL, 0);
	while ((word = strtok_r(rest, " ", &rest))) {
		char *equals = strchr(word, '=');
		int type = LFNDUAL_END;
		uint64_t value;

		if (!equals)
			fail("dualpi2 %s: no value", word);
		*equals = 0;
		value = strtoull(equals + 1, NULL, 10);
		while (--type && strcmp(dual_words[type], word))
			;
		if (!type)
			fail("dualpi2 has no %s", word);
		/* By the kernel's clock, like the run. */
		append_u64(type, type == LFNDUAL_FROM ? (BEGIN_US + value) * 1000 : value);
	}
	end(nest);
	commit(socket, "dualpi2");
	free(text);
}

void qdisc_change(int socket, int device_index, const struct change *change)
{
	struct rtattr *nest;

	begin(RTM_NEWQDISC, 0, device_index);
	nest = append(TCA_OPTIONS | NLA_F_NESTED, NULL, 0);
	if (change->sets_rate)
		append_u64(LFNLINK_RATE, change->rate_bps);
	if (change->sets_delay)
		append_u64(LFNLINK_DELAY, change->delay_ns);
	if (change->sets_losses)
		append(LFNLINK_OTHER_LOSSES, NULL, 0);
	end(nest);
	commit(socket, "a change of the link");
	extend(socket, device_index, LFNLINK_LOST, &change->lost);
	extend(socket, device_index, LFNLINK_UNOPENED, &change->unopened);
}

static void read_stats(struct rtattr *stats, struct queue_counters *counters)
{
	int left = RTA_PAYLOAD(stats);

	for (struct rtattr *part = RTA_DATA(stats); RTA_OK(part, left); part = RTA_NEXT(part, left)) {
		int type = part->rta_type & NLA_TYPE_MASK;

		if (type == TCA_STATS_QUEUE) {
			struct gnet_stats_queue *queue = RTA_DATA(part);

			counters->waiting = queue->qlen;
			counters->waiting_bytes = queue->backlog;
			counters->drops = queue->drops;
			counters->overlimits = queue->overlimits;
		} else if (type == TCA_STATS_BASIC) {
			struct gnet_stats_basic *basic = RTA_DATA(part);

			counters->packets = basic->packets;
			counters->bytes = basic->bytes;
		}
	}
}

void qdisc_read(int socket, int device_index, struct queue_counters *counters)
{
	char answer[8192];
	struct nlmsghdr *header = (void *)answer;
	struct tcmsg *tc = NLMSG_DATA(header);
	int bytes, left;

	begin(RTM_GETQDISC, NLM_F_ECHO, device_index);
	message.tc.tcm_parent = 0;
	message.tc.tcm_handle = QUEUE_HANDLE;
	if (send(socket, &message, message.header.nlmsg_len, 0) < 0)
		return;
	bytes = recv(socket, answer, sizeof answer, MSG_DONTWAIT);
	if (bytes <= 0 || header->nlmsg_type != RTM_NEWQDISC)
		return;
	left = header->nlmsg_len - NLMSG_LENGTH(sizeof *tc);
	for (struct rtattr *part = (struct rtattr *)((char *)tc + NLMSG_ALIGN(sizeof *tc)); RTA_OK(part, left);
	     part = RTA_NEXT(part, left))
		if ((part->rta_type & NLA_TYPE_MASK) == TCA_STATS2)
			read_stats(part, counters);
}
