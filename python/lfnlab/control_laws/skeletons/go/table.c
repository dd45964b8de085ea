/* The table of functions of controller.h, around those of calls.go. */
#include "_cgo_export.h"

static void *create(const struct lfn_config *config, struct lfn_control *control)
{
	(void)control; /* It holds the initial window. */
	return (void *)goCreate((struct lfn_config *)config);
}

static void destroy(void *state)
{
	goDestroy((uintptr_t)state);
}

static void ack(void *state, const struct lfn_ack *ack, struct lfn_control *control)
{
	goAck((uintptr_t)state, (void *)ack, control);
}

static void event(void *state, uint64_t now_ns, uint32_t event, uint64_t in_flight_bytes, struct lfn_control *control)
{
	(void)now_ns;
	(void)in_flight_bytes;
	goEvent((uintptr_t)state, event, control);
}

const struct lfn_controller *lfn_controller(void)
{
	static const struct lfn_controller controller = {
		.version = LFN_CONTROLLER_VERSION,
		.name = "mine",
		.create = create,
		.destroy = destroy,
		.ack = ack,
		.event = event,
	};

	return &controller;
}
