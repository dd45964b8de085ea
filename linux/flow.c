// SPDX-License-Identifier: GPL-2.0
/* The ends of a flow: a sender, a receiver, and the samples of the sender's socket. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <linux/tcp.h>

#include "fail.h"
#include "flow.h"
#include "qdisc.h"

int64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

void sleep_until_us(int64_t at_us)
{
	struct timespec at = { at_us / 1000000, at_us % 1000000 * 1000 };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
}

/* Also of the receiver: DCTCP's echoes marks segment by segment. */
int flow_open(const struct flow *flow)
{
	int tcp = socket(AF_INET, SOCK_STREAM, 0);

	if (setsockopt(tcp, IPPROTO_TCP, TCP_CONGESTION, flow->law, strlen(flow->law)))
		fail("congestion control %s: %m", flow->law);
	return tcp;
}

void receive(const struct flow *flow, int port)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(port) };
	int listener = flow_open(flow), yes = 1;

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
	if (bind(listener, (void *)&any, sizeof any) || listen(listener, 8))
		fail("receiver: %m");
	for (;;) {
		int connection = accept(listener, NULL, NULL);

		/*
		 * MSG_TRUNC: counted and freed, not copied. MSG_WAITALL: the kernel reads what comes at once, as this
		 * program would, but does not return to it: each return is a stop of a traced process.
		 */
		while (recv(connection, NULL, 1 << 30, MSG_TRUNC | MSG_WAITALL) > 0)
			;
		close(connection);
	}
}

static const char header[] =
	"t_us,cwnd,ssthresh,rtt_us,minrtt_us,ca,unacked,sacked,lost,retrans_out,total_retrans,bytes_acked,"
	"snd_wnd,rwnd_lim_us,sndbuf_lim_us,pacing,qlen,qdrops,qpkts,timeouts,rto_us,reordering,dsacks,"
	"delivered_ce,rcv_ooo,notsent\n";

FILE *flow_samples(const char *tag, int number)
{
	char file[300];
	FILE *out;

	snprintf(file, sizeof file, "/host/%s.flow%d.csv", tag, number);
	out = fopen(file, "w");
	if (!out)
		fail("%s: %m", file);
	setvbuf(out, NULL, _IOFBF, 1 << 16);
	fputs(header, out);
	return out;
}

void flow_sample(FILE *out, int tcp, int64_t time_us, const struct queue_counters *queue)
{
	struct tcp_info info = { 0 };
	socklen_t bytes = sizeof info;

	getsockopt(tcp, IPPROTO_TCP, TCP_INFO, &info, &bytes);
	fprintf(out, "%lld,%u,%u,%u,%u,%u,%u,%u,%u,%u,%u,%llu,%u,%llu,%llu,%llu,%u,%u,%u,%u,%u,%u,%u,%u,%u,%u\n",
		(long long)time_us, info.tcpi_snd_cwnd, info.tcpi_snd_ssthresh, info.tcpi_rtt,
		info.tcpi_min_rtt, info.tcpi_ca_state, info.tcpi_unacked, info.tcpi_sacked, info.tcpi_lost,
		info.tcpi_retrans, info.tcpi_total_retrans, (unsigned long long)info.tcpi_bytes_acked,
		info.tcpi_snd_wnd, (unsigned long long)info.tcpi_rwnd_limited,
		(unsigned long long)info.tcpi_sndbuf_limited, (unsigned long long)info.tcpi_pacing_rate,
		queue->waiting, queue->drops, queue->packets, info.tcpi_total_rto, info.tcpi_rto,
		info.tcpi_reordering, info.tcpi_dsack_dups, info.tcpi_delivered_ce, info.tcpi_rcv_ooopack,
		info.tcpi_notsent_bytes);
}

/* Most unsent data until the receiver has opened its window. */
#define FIRST_BYTES 65536

static void limit_unsent(int tcp, int bytes)
{
	setsockopt(tcp, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof bytes);
}

/* A limit of the rate, however high, has TCP pace as its law says. */
static void pace(int tcp)
{
	uint64_t most = UINT64_MAX - 1;

	if (setsockopt(tcp, SOL_SOCKET, SO_MAX_PACING_RATE, &most, sizeof most))
		fail("pacing: %m");
}

/*
 * Writes what the socket takes. Whether there is more to write.
 *
 * The receiver acknowledges a segment with PSH at once, which shifts the pairs of its delayed ACKs. Linux sets
 * PSH at the end of a write without MSG_MORE, and after half of the largest receive window so far: every 32 kB
 * of what is written before the window opens. So little is. A flow that stops has never more: what is written is
 * sent after its stop.
 */
static int write_some(int tcp, uint64_t *left, int may_fill)
{
	static char zeros[1 << 20];
	struct tcp_info info;
	socklen_t size = sizeof info;

	if (may_fill && !getsockopt(tcp, IPPROTO_TCP, TCP_INFO, &info, &size) && info.tcpi_snd_wnd > FIRST_BYTES)
		limit_unsent(tcp, -1);
	while (*left) {
		int more = *left > sizeof zeros;
		ssize_t sent = send(tcp, zeros, more ? sizeof zeros : *left,
				    MSG_NOSIGNAL | (more ? MSG_MORE : 0));

		if (sent < 0)
			return 1;
		*left -= sent;
	}
	shutdown(tcp, SHUT_WR);
	return 0;
}

/* IP and TCP headers, timestamps included. */
#define HEADERS_BYTES 52

/* When a slow application writes segment number, after its start. */
static int64_t writes_at_us(const struct flow *flow, uint64_t number)
{
	unsigned __int128 bits = (unsigned __int128)number * (flow->packet_bytes - HEADERS_BYTES) * 8;
	uint64_t active_us = bits * 1000000 / flow->write_bps;

	if (!flow->on_us)
		return active_us;
	return active_us / flow->on_us * (flow->on_us + flow->off_us) + active_us % flow->on_us;
}

/*
 * Writes the segments that a slow application has written by now, as its own writes, without PSH. When the next is
 * due; INT64_MAX if the socket takes no more, or there is no more.
 */
static int64_t write_slowly(int tcp, const struct flow *flow, int64_t start_us, uint64_t *written, uint64_t *left)
{
	static char zeros[1 << 16];
	uint64_t payload = flow->packet_bytes - HEADERS_BYTES;

	while (*left) {
		/* The rest of a segment that the socket took in part. */
		uint64_t rest = payload - *written % payload;
		int64_t due_us = start_us + writes_at_us(flow, *written / payload);
		ssize_t sent;

		if (due_us > now_us())
			return due_us;
		if (rest > *left)
			rest = *left;
		sent = send(tcp, zeros, rest, MSG_NOSIGNAL | (rest < *left ? MSG_MORE : 0));
		if (sent < 0)
			return INT64_MAX;
		*written += sent;
		*left -= sent;
	}
	shutdown(tcp, SHUT_WR);
	return INT64_MAX;
}

void transmit(const struct scenario *scenario, const struct flow *flow, int tcp, const char *address, int port,
	      int64_t begin_us)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
	int64_t end_us = begin_us + scenario->duration_us, due_us = flow->write_bps ? 0 : INT64_MAX, now;
	uint64_t left = flow->size_bytes ? flow->size_bytes : UINT64_MAX, written = 0;
	int writing = 1;

	inet_pton(AF_INET, address, &to.sin_addr);
	sleep_until_us(begin_us + flow->start_us);
	fcntl(tcp, F_SETFL, O_NONBLOCK);
	if (flow->pacing)
		pace(tcp);
	if (!flow->write_bps)
		limit_unsent(tcp, FIRST_BYTES);
	if (connect(tcp, (void *)&to, sizeof to) && errno != EINPROGRESS)
		fail("connect %s: %m", address);
	while (writing && (now = now_us()) < end_us) {
		int64_t wake_us = due_us < end_us ? due_us : end_us;
		/* A slow application that is not late waits for its clock, not for room. */
		struct pollfd waits = { due_us == INT64_MAX ? tcp : -1, POLLOUT, 0 };

		if (wake_us > now) {
			int64_t wait_us = wake_us - now;
			struct timespec until = { wait_us / 1000000, wait_us % 1000000 * 1000 };

			if (ppoll(&waits, 1, &until, NULL) <= 0 && due_us == INT64_MAX)
				continue;
		}
		if (waits.revents & POLLERR)
			writing = 0; /* given up by TCP: the samples show it */
		else if (flow->stop_us >= 0 && now_us() >= begin_us + flow->stop_us)
			writing = 0;
		else if (!flow->write_bps)
			writing = write_some(tcp, &left, flow->stop_us < 0);
		else
			due_us = write_slowly(tcp, flow, begin_us + flow->start_us, &written, &left);
		if (!left)
			writing = 0;
	}
	_exit(0);
}
