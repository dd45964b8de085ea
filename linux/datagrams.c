// SPDX-License-Identifier: GPL-2.0
/* Datagrams at a rate that steps in time, at the times of the simulator's sources of UDP. */
#define _GNU_SOURCE
#include <errno.h>
#include <time.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "datagrams.h"
#include "fail.h"

/* Programs of flows, whose timers have Linux's usual slack, are as late. */
enum { DISCARD_PORT = 9, IP_UDP_BYTES = 28, FRAMING_BYTES = 14, LATE_NS = 50000 };

void discard_datagrams(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(DISCARD_PORT) };
	int udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), least = 1;

	/* Its full buffer drops them. */
	setsockopt(udp, SOL_SOCKET, SO_RCVBUF, &least, sizeof least);
	if (bind(udp, (void *)&any, sizeof any))
		fail("receiver of UDP: %m");
}

static void sleep_until_ps(int64_t begin_us, uint64_t at_ps)
{
	uint64_t at_ns = begin_us * 1000 + at_ps / 1000 + LATE_NS;
	struct timespec at = { at_ns / 1000000000, at_ns % 1000000000 };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
}

/* A packet goes whenever the rate, summed over time, has filled one. */
void send_datagrams(const struct scenario *scenario, const struct source *source, const char *address, int64_t begin_us)
{
	static char zeros[1 << 16];
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(DISCARD_PORT) };
	int udp = socket(AF_INET, SOCK_DGRAM, 0);
	/* In bits times picoseconds per second: a packet, and what the rate has still to fill. */
	__int128 packet = (__int128)(source->packet_bytes + FRAMING_BYTES) * 8 * 1000000000000LL, owed = 0;
	uint64_t end_ps = scenario->duration_us * 1000000;

	prctl(PR_SET_TIMERSLACK, 1);
	inet_pton(AF_INET, address, &to.sin_addr);
	for (const struct burst *burst = source->burst; burst < source->burst + source->bursts; burst++) {
		uint64_t at_ps = burst->start_ps;

		while (burst->rate_bps) {
			__int128 due = owed > 0 ? owed : 0;
			uint64_t rest_ps = burst->stop_ps - at_ps;
			uint64_t wait_ps = (due + burst->rate_bps - 1) / burst->rate_bps;

			if (wait_ps >= rest_ps)
				break;
			owed += packet - (__int128)wait_ps * burst->rate_bps;
			at_ps += wait_ps;
			if (at_ps >= end_ps)
				_exit(0);
			sleep_until_ps(begin_us, at_ps);
			if (sendto(udp, zeros, source->packet_bytes - IP_UDP_BYTES, 0, (void *)&to, sizeof to) < 0)
				fail("UDP to %s: %m", address);
		}
		owed -= (__int128)(burst->stop_ps - at_ps) * burst->rate_bps;
	}
	_exit(0);
}
