/* A whole stack for tests: a fixed window of packets, each answered; a second without answers sends the window again. */
#include <stdlib.h>

#include "stack.h"

#define WINDOW 20u
#define DATA 1000u
#define RETRY_NS 1000000000u

struct pair {
	uint64_t in_flight, answers, next, retry_ns, size_bytes;
	int stopped;
	struct lfn_stack_progress progress;
};

static void *create(const struct lfn_stack_setup *setup)
{
	struct pair *pair;

	if (setup->packet_bytes < DATA + 40)
		return NULL;
	pair = calloc(1, sizeof(*pair));
	pair->retry_ns = UINT64_MAX;
	pair->size_bytes = setup->size_bytes;
	pair->progress.window_bytes = WINDOW * DATA;
	pair->progress.segment_bytes = DATA;
	return pair;
}

static void destroy(void *state)
{
	free(state);
}

static int transmit(void *state, uint32_t end, uint64_t now_ns, struct lfn_stack_datagram *datagram)
{
	struct pair *pair = state;

	if (end == 1 ? pair->answers == 0 : pair->stopped || pair->in_flight >= WINDOW)
		return 0;
	datagram->id = pair->next++;
	datagram->ecn = 0;
	datagram->bytes = end == 1 ? 40 : DATA + 40;
	if (end == 1) {
		pair->answers--;
		return 1;
	}
	pair->in_flight++;
	pair->retry_ns = now_ns + RETRY_NS;
	return 1;
}

static void receive(void *state, uint32_t end, uint64_t now_ns, uint64_t id, uint32_t ecn)
{
	struct pair *pair = state;

	(void)now_ns, (void)id, (void)ecn;
	if (end == 0) {
		pair->in_flight -= pair->in_flight > 0;
		return;
	}
	pair->answers++;
	pair->progress.read_bytes += DATA;
}

static uint64_t timeout(void *state, uint32_t end)
{
	return end == 0 ? ((struct pair *)state)->retry_ns : UINT64_MAX;
}

static void timer(void *state, uint32_t end, uint64_t now_ns)
{
	struct pair *pair = state;

	(void)end;
	pair->in_flight = 0;
	pair->progress.timeouts++;
	pair->retry_ns = now_ns + RETRY_NS;
}

static void stop(void *state, uint64_t now_ns)
{
	(void)now_ns;
	((struct pair *)state)->stopped = 1;
}

static void forget(void *state, uint64_t id)
{
	(void)state, (void)id;
}

static void progress(void *state, struct lfn_stack_progress *out)
{
	*out = ((struct pair *)state)->progress;
}

static const struct lfn_stack stack = {
	.version = LFN_STACK_VERSION,
	.name = "window",
	.create = create,
	.destroy = destroy,
	.transmit = transmit,
	.receive = receive,
	.timeout = timeout,
	.timer = timer,
	.stop = stop,
	.forget = forget,
	.progress = progress,
};

const struct lfn_stack *lfn_stack(void)
{
	return &stack;
}
