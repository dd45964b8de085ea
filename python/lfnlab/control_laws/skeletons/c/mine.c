/* Reno (RFC 5681), counted in whole packets, as a controller that lfnlab loads. Change it into yours.
 *
 *     cc -O2 -shared -fPIC -o mine.so mine.c
 *     lfn compare --law ./mine.so,reno:linux --rate 100Mbit/s --rtt 40ms
 */
#include <stdlib.h>

#include "controller.h"

struct mine {
	uint64_t packet_bytes;
	uint64_t window;   /* Packets. */
	uint64_t ssthresh; /* Packets. */
	uint64_t counted;  /* Packets delivered since the window last grew. */
	uint64_t before[2]; /* Window and ssthresh before the last reduction. */
};

static void decide(const struct mine *mine, struct lfn_control *control)
{
	control->window_bytes = mine->window * mine->packet_bytes;
}

static void *create(const struct lfn_config *config, struct lfn_control *control)
{
	struct mine *mine = calloc(1, sizeof *mine);

	(void)control; /* It holds the initial window. */
	if (mine) {
		mine->packet_bytes = config->packet_bytes;
		mine->window = config->initial_window_bytes / config->packet_bytes;
		mine->ssthresh = UINT64_MAX;
	}
	return mine;
}

static void ack(void *state, const struct lfn_ack *ack, struct lfn_control *control)
{
	struct mine *mine = state;
	uint64_t delivered = ack->acked_bytes / mine->packet_bytes;

	if (ack->flags & (LFN_ACK_RECOVERY | LFN_ACK_DUPLICATE) || !(ack->flags & LFN_ACK_WINDOW_LIMITED))
		return;
	if (mine->window < mine->ssthresh) { /* Slow start */
		uint64_t most = mine->ssthresh - mine->window;
		uint64_t grown = delivered < most ? delivered : most;

		mine->window += grown;
		delivered -= grown;
	}
	if (delivered > 0) { /* Congestion avoidance: a packet for each window of them */
		if (mine->counted >= mine->window) {
			mine->counted = 0;
			mine->window++;
		}
		mine->counted += delivered;
		if (mine->counted >= mine->window) {
			uint64_t grown = mine->counted / mine->window;

			mine->counted -= grown * mine->window;
			mine->window += grown;
		}
	}
	decide(mine, control);
}

static void event(void *state, uint64_t now_ns, uint32_t event, uint64_t in_flight_bytes, struct lfn_control *control)
{
	struct mine *mine = state;

	(void)now_ns;
	(void)in_flight_bytes;
	if (event == LFN_EVENT_LOSS || event == LFN_EVENT_CE || event == LFN_EVENT_TIMEOUT) {
		mine->before[0] = mine->window;
		mine->before[1] = mine->ssthresh;
		mine->ssthresh = mine->window / 2 > 2 ? mine->window / 2 : 2;
		mine->window = event == LFN_EVENT_TIMEOUT ? 1 : mine->ssthresh;
		mine->counted = 0;
	} else if (event == LFN_EVENT_TIMEOUT_AGAIN) {
		mine->window = 1;
	} else if (event == LFN_EVENT_SPURIOUS && mine->before[0] > mine->window) {
		mine->window = mine->before[0];
		mine->ssthresh = mine->before[1];
	}
	decide(mine, control);
}

static void probe(const void *state, double *values)
{
	const struct mine *mine = state;

	values[0] = (double)mine->counted;
}

static const char *const values[] = { "counted" };

const struct lfn_controller *lfn_controller(void)
{
	static const struct lfn_controller controller = {
		.version = LFN_CONTROLLER_VERSION,
		.name = "mine",
		.value_count = 1,
		.values = values,
		.create = create,
		.destroy = free,
		.ack = ack,
		.event = event,
		.probe = probe,
	};

	return &controller;
}
