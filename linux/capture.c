// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <net/if.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>

#include "capture.h"
#include "fail.h"
#include "flow.h"

/* A ring holds what comes between two looks: 16,384 packets in 2 ms are 64 Gbit/s of 1000 bytes. */
enum { FRAME_BYTES = 256, BLOCK_BYTES = 1 << 16, FRAMES = 1 << 14, LOOK_US = 2000, TCP_SYN = 2, MAX_TAPS = MAX_FLOWS + MAX_NODES };

static struct tap {
	int socket, flow;
	uint64_t delay_ns;
	uint8_t *ring;
	int next;
} taps[MAX_TAPS];
static int tap_count;

void capture_open(const char *device, int flow, uint64_t delay_ns)
{
	struct tpacket_req ring = { BLOCK_BYTES, FRAMES / (BLOCK_BYTES / FRAME_BYTES), FRAME_BYTES, FRAMES };
	struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
	struct tap *tap = &taps[tap_count++];
	int version = TPACKET_V2;

	tap->flow = flow;
	tap->delay_ns = delay_ns;
	tap->socket = socket(AF_PACKET, SOCK_RAW, 0);
	at.sll_ifindex = if_nametoindex(device);
	if (setsockopt(tap->socket, SOL_PACKET, PACKET_VERSION, &version, sizeof version) ||
	    setsockopt(tap->socket, SOL_PACKET, PACKET_RX_RING, &ring, sizeof ring))
		fail("recording at %s: %m", device);
	tap->ring = mmap(NULL, (size_t)FRAMES * FRAME_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, tap->socket, 0);
	if (tap->ring == MAP_FAILED || bind(tap->socket, (void *)&at, sizeof at))
		fail("recording at %s: %m", device);
}

static int64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* The flow of a packet of IPv4, by the address of its receiver: 10.1.FLOW.1. */
static int flow_of(const uint8_t *ethernet, int leaves)
{
	const uint8_t *address = ethernet + ETH_HLEN + (leaves ? 16 : 12);

	return address[0] == 10 && address[1] == 1 ? address[2] : -1;
}

/* Writes a packet, unless it is not wanted, or enough are. */
static void keep(FILE *out, const struct scenario *scenario, const struct tap *tap, const struct tpacket2_hdr *head,
		 int64_t begin_ns, uint64_t *left)
{
	const struct sockaddr_ll *from = (const void *)((const uint8_t *)head + TPACKET_ALIGN(sizeof *head));
	const uint8_t *frame = (const uint8_t *)head + head->tp_mac;
	struct captured it = { .bytes = head->tp_len, .receiver = tap->flow >= 0 };
	size_t kept = head->tp_snaplen < sizeof it.head ? head->tp_snaplen : sizeof it.head;
	int flow;

	it.leaves = from->sll_pkttype == PACKET_OUTGOING;
	flow = tap->flow >= 0 ? tap->flow : flow_of(frame, it.leaves);
	it.at_ns = head->tp_sec * 1000000000LL + head->tp_nsec - begin_ns;
	if (it.receiver && it.leaves)
		it.at_ns -= tap->delay_ns;
	if (from->sll_protocol != htons(ETH_P_IP) || flow < 0 || it.at_ns >= scenario->capture_to_us * 1000)
		return;
	/* Sequence numbers begin at the SYN, so it is always kept. */
	if (!(frame[ETH_HLEN + 20 + 13] & TCP_SYN)) {
		if (it.at_ns < scenario->capture_from_us * 1000 || !*left)
			return;
		--*left;
	}
	it.flow = flow;
	memcpy(it.head, frame, kept);
	if (fwrite(&it, sizeof it, 1, out) != 1)
		fail("recorded packets: %m");
}

static void drain(FILE *out, const struct scenario *scenario, struct tap *tap, int64_t begin_ns, uint64_t *left)
{
	struct tpacket_stats seen;
	socklen_t size = sizeof seen;

	for (;;) {
		struct tpacket2_hdr *head = (void *)(tap->ring + (size_t)tap->next * FRAME_BYTES);

		if (!(__atomic_load_n(&head->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER))
			break;
		keep(out, scenario, tap, head, begin_ns, left);
		__atomic_store_n(&head->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
		tap->next = (tap->next + 1) % FRAMES;
	}
	if (!getsockopt(tap->socket, SOL_PACKET, PACKET_STATISTICS, &seen, &size) && seen.tp_drops)
		fail("recording: %u packets came between two looks and were not recorded", seen.tp_drops);
}

void capture_run(const struct scenario *scenario, int64_t begin_us, const char *file)
{
	/* Stamps are of the clock that tells the date. */
	int64_t begin_ns = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC) + begin_us * 1000;
	int64_t end_us = begin_us + scenario->duration_us;
	uint64_t left = scenario->capture_packets;
	FILE *out = fopen(file, "w");

	if (!out)
		fail("%s: %m", file);
	/* Both clocks begin at whole microseconds of each other. */
	begin_ns = (begin_ns + 500) / 1000 * 1000;
	for (int64_t at_us = begin_us; at_us <= end_us; at_us += LOOK_US) {
		sleep_until_us(at_us);
		for (int i = 0; i < tap_count; i++)
			drain(out, scenario, &taps[i], begin_ns, &left);
	}
	if (fclose(out))
		fail("%s: %m", file);
	_exit(0);
}
