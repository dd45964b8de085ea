/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The C compiler's layout of the structs of law.h, for the test that compares it with Rust. */
#include <stddef.h>
#include "law.h"
#include "slow_start.h"

#define AT(type, field) (u32)offsetof(struct type, field)

extern const u32 law_layout[];
const u32 law_layout[] = {
	sizeof(struct law_ack),
	AT(law_ack, now_ns), AT(law_ack, rtt_ns), AT(law_ack, srtt_ns), AT(law_ack, min_rtt_ns),
	AT(law_ack, delivered), AT(law_ack, acked), AT(law_ack, newly_delivered),
	AT(law_ack, newly_lost), AT(law_ack, inflight), AT(law_ack, ce), AT(law_ack, mss_B),
	AT(law_ack, flags),
	sizeof(struct law_loss),
	AT(law_loss, now_ns), AT(law_loss, rtt_ns), AT(law_loss, srtt_ns), AT(law_loss, min_rtt_ns),
	AT(law_loss, kind), AT(law_loss, inflight), AT(law_loss, mss_B),
	sizeof(struct law_control),
	AT(law_control, cwnd), AT(law_control, ssthresh), AT(law_control, pacing_Bps),
	AT(law_control, next_tick_ns), AT(law_control, block), AT(law_control, blocks),
	sizeof(struct law_rate),
	AT(law_rate, delivered), AT(law_rate, prior_delivered), AT(law_rate, lost), AT(law_rate, prior_lost),
	AT(law_rate, interval_ns), AT(law_rate, tx_in_flight), AT(law_rate, prior_inflight),
	AT(law_rate, flags),
	sizeof(struct law_config),
	AT(law_config, now_ns), AT(law_config, srtt_ns), AT(law_config, variant), AT(law_config, mss_B), AT(law_config, seed),
	AT(law_config, parameters),
	sizeof(struct law_ops),
	AT(law_ops, init), AT(law_ops, on_sample), AT(law_ops, on_ack), AT(law_ops, on_loss),
	AT(law_ops, on_open), AT(law_ops, on_tick), AT(law_ops, on_undo), AT(law_ops, probe),
	AT(law_ops, on_control), AT(law_ops, on_lost), AT(law_ops, on_restart),
	AT(law_ops, state_bytes), AT(law_ops, predicted),
	sizeof(struct slow_start), LAW_STATE_BYTES, LAW_CONTROL_STATE_BYTES,
	LAW_PARAMETERS, LAW_PARAMETER_ONE,
};
