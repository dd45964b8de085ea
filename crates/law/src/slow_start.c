/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* laws/slow_start.h as linkable functions. */
#include "slow_start.h"

void lfn_slow_start_init(struct slow_start *s, u32 kind);
void lfn_slow_start_on_sample(struct slow_start *s, const struct law_ack *ack, struct law_control *control);
u32 lfn_slow_start_on_ack(struct slow_start *s, u32 n, const struct law_ack *ack, struct law_control *control);
void lfn_slow_start_on_loss(struct slow_start *s, const struct law_loss *loss);

void lfn_slow_start_init(struct slow_start *s, u32 kind)
{
	slow_start_init(s, kind);
}

void lfn_slow_start_on_sample(struct slow_start *s, const struct law_ack *ack, struct law_control *control)
{
	slow_start_on_sample(s, ack, control);
}

u32 lfn_slow_start_on_ack(struct slow_start *s, u32 n, const struct law_ack *ack, struct law_control *control)
{
	return slow_start_on_ack(s, n, ack, control);
}

void lfn_slow_start_on_loss(struct slow_start *s, const struct law_loss *loss)
{
	slow_start_on_loss(s, loss);
}
