/* Drives one controller through one stimulus: a sender with a window, on a path without a queue.
 *
 *     drive FILE.so PACKET_BYTES RTT_S STEP...
 *
 * Each packet is acknowledged one RTT after it left, in order. A lost one is found by the third packet after it (RFC 9002,
 * section 6.1.1), or by a timeout of srtt + max(4 rttvar, 200 ms), which doubles. Steps, in order:
 *
 *     for S        let S seconds pass
 *     until P S    let time pass until the window is P packets, at most S seconds
 *     lose N       the next N packets to leave are lost
 *     every M      of packets to be lost, each Mth one is, the first at once
 *     black 0|1    whether all packets that leave are lost
 *     rtt S        the RTT of packets that leave from now on
 *     app R        the application writes R packets a second; -1: there is always more to send
 *     mark TEXT    prints "# TEXT"
 *
 * Output, each 10 ms, at each mark and around each reduction: time (s), window, pacing rate (per second), in flight, delivered,
 * found lost, all in packets, and smoothed RTT (s).
 */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller.h"

#define SAMPLE_NS 10000000ull
#define LEAST_RTO_NS 200000000ull
#define NEVER UINT64_MAX
#define THRESHOLD 3 /* Packets, RFC 9002 section 6.1.1 */

struct flight {
	struct lfn_packet packet;
	uint64_t due_ns; /* Its ACK arrives. */
	uint64_t delivered_bytes, delivered_ns, first_sent_ns;
	int lost, open;
};

static const struct lfn_controller *law;
static void *state;
static struct lfn_control control;
static struct flight *ring; /* Packets from `first` to `next`, by number. */
static uint64_t size = 1 << 16, first, next;
static uint64_t now_ns, rtt_ns, srtt_ns, var_ns, min_ns = NEVER, rto_ns, sample_ns;
static uint64_t in_flight, delivered, found_lost, packet_bytes; /* The first three in packets. */
static uint64_t due_first;                                      /* The first packet whose ACK is still to come. */
static uint64_t last_due_ns, pace_ns, delivered_ns, first_sent_ns, armed_ns, round_end, recovery_end;
static double written = INFINITY, app_rate = -1;
static uint64_t written_ns;
static unsigned lose, every = 1, since, timeouts;
static int black, recovers, window_limited, starved;

static struct flight *of(uint64_t number)
{
	return &ring[number & (size - 1)];
}

static void row(void)
{
	double packet = (double)packet_bytes;

	printf("%.9f %.6f %.3f %llu %llu %llu %.9f\n", now_ns / 1e9, control.window_bytes / packet, control.pacing_Bps / packet,
	       (unsigned long long)in_flight, (unsigned long long)delivered, (unsigned long long)found_lost, srtt_ns / 1e9);
}

/* After each call: rows around a reduction. */
static void decided(struct lfn_control before)
{
	if (control.window_bytes + packet_bytes <= before.window_bytes) {
		struct lfn_control after = control;

		control = before;
		row();
		control = after;
		row();
	}
}

static void event(uint32_t kind)
{
	struct lfn_control before = control;

	if (law->event)
		law->event(state, now_ns, kind, in_flight * packet_bytes, &control);
	decided(before);
}

static void forget(void)
{
	while (first < next && !of(first)->open)
		first++;
	if (due_first < first)
		due_first = first;
}

static void found(struct flight *one)
{
	one->open = 0;
	in_flight--;
	found_lost++;
	if (law->lost)
		law->lost(state, now_ns, &one->packet, &control);
}

static void sample(uint64_t rtt)
{
	if (!srtt_ns) { /* RFC 6298 (2.2), (2.3) */
		srtt_ns = rtt;
		var_ns = rtt / 2;
	} else {
		uint64_t off = rtt > srtt_ns ? rtt - srtt_ns : srtt_ns - rtt;

		var_ns = (3 * var_ns + off) / 4;
		srtt_ns = (7 * srtt_ns + rtt) / 8;
	}
	min_ns = rtt < min_ns ? rtt : min_ns;
	rto_ns = srtt_ns + (4 * var_ns > LEAST_RTO_NS ? 4 * var_ns : LEAST_RTO_NS);
}

static void acknowledge(struct flight *one)
{
	struct lfn_control before = control;
	uint64_t number = one->packet.number, lost = 0, begun = recovery_end;
	struct lfn_ack ack = { .now_ns = now_ns, .rtt_ns = now_ns - one->packet.sent_ns, .acked_bytes = (uint32_t)packet_bytes };
	int round = one->packet.number >= round_end;

	one->open = 0;
	in_flight--;
	delivered++;
	timeouts = 0;
	if (law->acked)
		law->acked(state, now_ns, &one->packet, &control);
	sample(ack.rtt_ns);
	for (uint64_t other = first; other + THRESHOLD <= number; other++)
		if (of(other)->open) {
			found(of(other));
			lost++;
			if (other >= begun && recovery_end == begun) {
				recovery_end = next;
				recovers = 1;
			}
		}
	if (recovery_end != begun)
		event(LFN_EVENT_LOSS);
	else if (recovers && number >= recovery_end) {
		recovers = 0;
		event(LFN_EVENT_RECOVERED);
	}
	if (round)
		round_end = next;
	uint64_t ack_ns = now_ns - one->delivered_ns, send_ns = one->packet.sent_ns - one->first_sent_ns;

	ack.srtt_ns = srtt_ns;
	ack.min_rtt_ns = min_ns;
	ack.in_flight_bytes = in_flight * packet_bytes;
	ack.delivered_bytes = delivered * packet_bytes;
	ack.rate_bytes = ack.delivered_bytes - one->delivered_bytes;
	ack.rate_interval_ns = ack_ns > send_ns ? ack_ns : send_ns;
	ack.lost_bytes = (uint32_t)(lost * packet_bytes);
	/* Data above a hole: TCP's windows do not grow by it. */
	int hole = of(first)->open && first < number;

	ack.flags = (hole ? LFN_ACK_DUPLICATE : 0) | (window_limited ? LFN_ACK_WINDOW_LIMITED : 0) | (round ? LFN_ACK_ROUND_START : 0) |
		    (recovers ? LFN_ACK_RECOVERY : 0) |
		    (one->packet.flags & LFN_PACKET_APP_LIMITED ? LFN_ACK_RATE_APP_LIMITED : 0);
	delivered_ns = now_ns;
	first_sent_ns = one->packet.sent_ns;
	forget();
	law->ack(state, &ack, &control);
	decided(before);
	armed_ns = in_flight ? now_ns + rto_ns : NEVER;
}

static void timeout(void)
{
	struct lfn_control before = control;

	for (uint64_t one = first; one < next; one++)
		if (of(one)->open)
			found(of(one));
	forget();
	recovers = 0;
	recovery_end = next;
	event(timeouts++ ? LFN_EVENT_TIMEOUT_AGAIN : LFN_EVENT_TIMEOUT);
	decided(before);
	rto_ns *= 2;
	armed_ns = now_ns + rto_ns;
	pace_ns = now_ns;
	if (written < 1) /* Lost data are sent again. */
		written = 1;
}

static void grow(void)
{
	struct flight *larger = calloc(2 * size, sizeof *larger);

	if (!larger)
		exit(3);
	for (uint64_t one = first; one < next; one++)
		larger[one & (2 * size - 1)] = *of(one);
	free(ring);
	ring = larger;
	size *= 2;
}

static void leave(void)
{
	struct lfn_control before = control;

	if (next - first + 1 >= size)
		grow();
	if (!in_flight) {
		if (starved)
			event(LFN_EVENT_RESTART);
		delivered_ns = first_sent_ns = now_ns;
		armed_ns = now_ns + rto_ns;
	}
	starved = 0;
	written -= 1;

	int falls = lose && since++ % every == 0;

	struct flight *one = of(next);

	*one = (struct flight){
		.packet = { .number = next, .sent_ns = now_ns, .bytes = (uint32_t)packet_bytes,
			    .flags = written < 1 ? LFN_PACKET_APP_LIMITED : 0 },
		.due_ns = now_ns + rtt_ns > last_due_ns ? now_ns + rtt_ns : last_due_ns,
		.delivered_bytes = delivered * packet_bytes, .delivered_ns = delivered_ns, .first_sent_ns = first_sent_ns,
		.lost = black || falls, .open = 1,
	};
	last_due_ns = one->due_ns;
	lose -= (unsigned)falls;
	next++;
	in_flight++;
	if (law->sent)
		law->sent(state, now_ns, &one->packet, in_flight * packet_bytes, &control);
	if (control.pacing_Bps)
		pace_ns = (pace_ns > now_ns ? pace_ns : now_ns) + (uint64_t)(packet_bytes * 1e9 / control.pacing_Bps);
	decided(before);
}

/* Time passes until `end_ns`, or until the window is so many packets. */
static void pass(uint64_t end_ns, double packets)
{
	for (;;) {
		if (app_rate >= 0) {
			written += app_rate * (now_ns - written_ns) / 1e9;
			written_ns = now_ns;
		}
		int fits = (in_flight + 1) * packet_bytes <= control.window_bytes || !in_flight;

		if (control.window_bytes >= packets * packet_bytes)
			return;
		if (fits && written >= 1 - 1e-9 && (pace_ns <= now_ns || !control.pacing_Bps)) {
			leave();
			continue;
		}
		window_limited = !fits || written >= 1;
		starved = !window_limited;

		uint64_t event_ns = end_ns;

		while (due_first < next && (of(due_first)->lost || !of(due_first)->open))
			due_first++;
		uint64_t due_ns = due_first < next ? of(due_first)->due_ns : NEVER;
		uint64_t times[] = { due_ns, armed_ns, sample_ns, control.next_tick_ns ? control.next_tick_ns : NEVER,
				     fits && written >= 1 ? pace_ns : NEVER,
				     fits && written < 1 && app_rate > 0 ?
					     now_ns + 1 + (uint64_t)((1 - written) * 1e9 / app_rate) : NEVER };

		for (unsigned one = 0; one < sizeof times / sizeof *times; one++)
			event_ns = times[one] < event_ns ? times[one] : event_ns;
		if (event_ns >= end_ns && end_ns <= now_ns)
			return;
		now_ns = event_ns > now_ns ? event_ns : now_ns;
		if (sample_ns <= now_ns) {
			row();
			sample_ns += SAMPLE_NS;
		} else if (due_ns <= now_ns) {
			acknowledge(of(due_first));
		} else if (armed_ns <= now_ns && in_flight) {
			timeout();
		} else if (control.next_tick_ns && control.next_tick_ns <= now_ns) {
			control.next_tick_ns = 0;
			if (law->tick)
				law->tick(state, now_ns, &control);
		} else if (now_ns >= end_ns) {
			return;
		}
		if (armed_ns <= now_ns && !in_flight)
			armed_ns = NEVER;
	}
}

static double number(char **steps, int count, int place)
{
	char *end;
	double value = place < count ? strtod(steps[place], &end) : NAN;

	if (isnan(value) || *end) {
		fprintf(stderr, "drive: step %d: a number is missing\n", place);
		exit(2);
	}
	return value;
}

int main(int count, char **words)
{
	if (count < 4)
		return fputs("usage: drive FILE.so PACKET_BYTES RTT_S STEP...\n", stderr), 2;
	void *library = dlopen(words[1], RTLD_NOW);

	if (!library)
		return fprintf(stderr, "drive: %s\n", dlerror()), 2;
	const struct lfn_controller *(*table)(void) = (const struct lfn_controller *(*)(void))dlsym(library, "lfn_controller");

	law = table ? table() : NULL;
	if (!law || law->version != LFN_CONTROLLER_VERSION)
		return fprintf(stderr, "drive: %s: no controller of version %u\n", words[1], LFN_CONTROLLER_VERSION), 2;
	packet_bytes = (uint64_t)number(words, count, 2);
	rtt_ns = (uint64_t)llround(number(words, count, 3) * 1e9);
	ring = calloc(size, sizeof *ring);
	now_ns = 1000000000; /* The handshake took place before. */
	sample_ns = now_ns;
	armed_ns = NEVER;
	sample(rtt_ns);
	struct lfn_config config = { .now_ns = now_ns, .srtt_ns = srtt_ns, .initial_window_bytes = 10 * packet_bytes,
				     .packet_bytes = (uint32_t)packet_bytes, .seed = 1 };

	control.window_bytes = config.initial_window_bytes;
	state = law->create(&config, &control);
	if (!state || !ring)
		return 3;
	for (int place = 4; place < count; place++) {
		const char *step = words[place];

		if (!strcmp(step, "for")) {
			pass(now_ns + (uint64_t)llround(number(words, count, ++place) * 1e9), INFINITY);
		} else if (!strcmp(step, "until")) {
			double packets = number(words, count, ++place);

			pass(now_ns + (uint64_t)llround(number(words, count, ++place) * 1e9), packets);
		} else if (!strcmp(step, "lose")) {
			lose = (unsigned)number(words, count, ++place);
			since = 0;
		} else if (!strcmp(step, "every")) {
			every = (unsigned)fmax(number(words, count, ++place), 1);
		} else if (!strcmp(step, "black")) {
			black = number(words, count, ++place) != 0;
		} else if (!strcmp(step, "rtt")) {
			rtt_ns = (uint64_t)llround(number(words, count, ++place) * 1e9);
		} else if (!strcmp(step, "app")) {
			app_rate = number(words, count, ++place);
			written = app_rate < 0 ? INFINITY : 0;
			written_ns = now_ns;
		} else if (!strcmp(step, "mark") && place + 1 < count) {
			printf("# %s\n", words[++place]);
			row();
		} else {
			return fprintf(stderr, "drive: unknown step %s\n", step), 2;
		}
	}
	row();
	return 0;
}
