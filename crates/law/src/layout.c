/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The C compiler's layout of the structs of law.h, for the test that compares it with Rust. */
#include <stddef.h>
#include "law.h"
#include "slow_start.h"

#define AT(type, field) (u32)offsetof(struct type, field)

extern const u32 law_layout[];
const u32 law_layout[] = {
	sizeof(struct law_ack), sizeof(struct law_loss), sizeof(struct law_control), sizeof(struct law_rate),
	sizeof(struct law_config),
	sizeof(struct law_ops),
	AT(law_ops, init), AT(law_ops, on_sample), AT(law_ops, on_ack), AT(law_ops, on_loss),
	AT(law_ops, on_open), AT(law_ops, on_tick), AT(law_ops, on_undo), AT(law_ops, probe),
	AT(law_ops, on_control), AT(law_ops, on_lost), AT(law_ops, on_restart),
	AT(law_ops, state_bytes), AT(law_ops, predicted),
	sizeof(struct slow_start),
};
