/* A law of laws/ behind controller.h, with the slow start and the reduction of a plain sender: the battery's rows of our own
 * laws. The compiler includes its header first; LAW is its name, VARIANT the place in its registry line's list, NAME both.
 */
#include <stdlib.h>

#include "controller.h"
#define OPS_(law) law_ops_##law
#define OPS(law) OPS_(law)

struct own {
	struct law_control control;
	uint64_t packet_bytes, srtt_ns, min_rtt_ns, rtt_ns;
	_Alignas(16) unsigned char state[LAW_CONTROL_STATE_BYTES];
};

static void decide(struct own *own, struct lfn_control *control)
{
	control->window_bytes = (uint64_t)(((unsigned __int128)own->control.cwnd * own->packet_bytes) >> 32);
}

static void *create(const struct lfn_config *config, struct lfn_control *control)
{
	struct own *own = calloc(1, sizeof *own);
	struct law_config told = { .now_ns = config->now_ns, .srtt_ns = config->srtt_ns, .variant = VARIANT,
				   .mss_B = config->packet_bytes, .seed = config->seed };

	(void)control;
	if (!own)
		return NULL;
	own->packet_bytes = config->packet_bytes;
	own->control.cwnd = (config->initial_window_bytes << 32) / config->packet_bytes;
	own->control.ssthresh = LAW_INFINITE;
	OPS(LAW).init(own->state, &told, &own->control);
	return own;
}

static void ack(void *state, const struct lfn_ack *ack, struct lfn_control *control)
{
	struct own *own = state;
	uint32_t n = (uint32_t)(ack->acked_bytes / own->packet_bytes);
	int recovers = (ack->flags & LFN_ACK_RECOVERY) != 0;
	struct law_ack told = {
		.now_ns = ack->now_ns, .rtt_ns = ack->rtt_ns, .srtt_ns = ack->srtt_ns, .min_rtt_ns = ack->min_rtt_ns,
		.delivered = ack->delivered_bytes / own->packet_bytes, .acked = n, .newly_delivered = n,
		.newly_lost = (uint32_t)(ack->lost_bytes / own->packet_bytes),
		.inflight = (uint32_t)(ack->in_flight_bytes / own->packet_bytes), .mss_B = (uint32_t)own->packet_bytes,
		.flags = (recovers ? 0 : LAW_ACK_OPEN) | (ack->flags & LFN_ACK_ROUND_START ? LAW_ACK_ROUND_START : 0) |
			 (ack->flags & LFN_ACK_WINDOW_LIMITED ? LAW_ACK_CWND_LIMITED : 0),
	};

	own->srtt_ns = ack->srtt_ns;
	own->min_rtt_ns = ack->min_rtt_ns;
	own->rtt_ns = ack->rtt_ns;
	if (OPS(LAW).on_sample)
		OPS(LAW).on_sample(own->state, &told, &own->control);
	if (!recovers && !(ack->flags & LFN_ACK_DUPLICATE) && ack->flags & LFN_ACK_WINDOW_LIMITED) {
		/* An ACK is of one packet, so slow start ends with it. */
		if (own->control.cwnd < own->control.ssthresh)
			own->control.cwnd = law_min(own->control.cwnd + LAW_SEG(n), own->control.ssthresh);
		else
			OPS(LAW).on_ack(own->state, n, &told, &own->control);
	}
	decide(own, control);
}

static void event(void *state, uint64_t now_ns, uint32_t event, uint64_t in_flight_bytes, struct lfn_control *control)
{
	struct own *own = state;
	struct law_loss loss = { .now_ns = now_ns, .rtt_ns = own->rtt_ns, .srtt_ns = own->srtt_ns,
				 .min_rtt_ns = own->min_rtt_ns, .mss_B = (uint32_t)own->packet_bytes,
				 .inflight = (uint32_t)(in_flight_bytes / own->packet_bytes) };

	if (event == LFN_EVENT_LOSS || event == LFN_EVENT_TIMEOUT) {
		loss.kind = event == LFN_EVENT_LOSS ? LAW_LOSS_FAST : LAW_LOSS_RTO;
		OPS(LAW).on_loss(own->state, &loss, &own->control);
		own->control.cwnd = event == LFN_EVENT_LOSS ? own->control.ssthresh : LAW_ONE;
	} else if (event == LFN_EVENT_TIMEOUT_AGAIN) {
		own->control.cwnd = LAW_ONE;
	}
	decide(own, control);
}

const struct lfn_controller *lfn_controller(void)
{
	static const struct lfn_controller controller = {
		.version = LFN_CONTROLLER_VERSION,
		.name = NAME,
		.create = create,
		.destroy = free,
		.ack = ack,
		.event = event,
	};

	return &controller;
}
