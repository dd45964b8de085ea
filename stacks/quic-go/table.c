/* The functions of main.go behind controller.h. */
#include "controller.h"

extern uintptr_t goCreate(void *config, void *control);
extern void goDestroy(uintptr_t state);
extern void goSent(uintptr_t state, uint64_t now_ns, void *packet, uint64_t in_flight_bytes, void *control);
extern void goFate(uintptr_t state, uint64_t now_ns, void *packet, int lost);
extern void goAck(uintptr_t state, void *ack, void *control);
extern void goTimeout(uintptr_t state, uint64_t now_ns, void *control);

static void *create(const struct lfn_config *config, struct lfn_control *control)
{
	return (void *)goCreate((void *)config, control);
}

static void destroy(void *state)
{
	goDestroy((uintptr_t)state);
}

static void sent(void *state, uint64_t now_ns, const struct lfn_packet *packet, uint64_t in_flight_bytes,
		 struct lfn_control *control)
{
	goSent((uintptr_t)state, now_ns, (void *)packet, in_flight_bytes, control);
}

static void acked(void *state, uint64_t now_ns, const struct lfn_packet *packet, struct lfn_control *control)
{
	(void)control;
	goFate((uintptr_t)state, now_ns, (void *)packet, 0);
}

static void lost(void *state, uint64_t now_ns, const struct lfn_packet *packet, struct lfn_control *control)
{
	(void)control;
	goFate((uintptr_t)state, now_ns, (void *)packet, 1);
}

static void ack(void *state, const struct lfn_ack *ack, struct lfn_control *control)
{
	goAck((uintptr_t)state, (void *)ack, control);
}

static void event(void *state, uint64_t now_ns, uint32_t event, uint64_t in_flight_bytes, struct lfn_control *control)
{
	(void)in_flight_bytes;
	if (event == LFN_EVENT_TIMEOUT || event == LFN_EVENT_TIMEOUT_AGAIN)
		goTimeout((uintptr_t)state, now_ns, control);
}

const struct lfn_controller *lfn_controller(void)
{
	static const struct lfn_controller controller = {
		.version = LFN_CONTROLLER_VERSION,
		.name = LFN_NAME,
		.create = create,
		.destroy = destroy,
		.sent = sent,
		.acked = acked,
		.lost = lost,
		.ack = ack,
		.event = event,
	};

	return &controller;
}
