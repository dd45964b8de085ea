/* Twenty scenarios for a congestion controller, as a part of its stack's own tests: link liblfn_harness.a.
 *
 *     extern const struct lfn_controller *lfn_controller(void);
 *     int main(void) { return lfn_harness_run(lfn_controller(), "build/lfn") != 0; }
 */
#ifndef LFN_HARNESS_H
#define LFN_HARNESS_H

#include "controller.h"

#ifdef __cplusplus
extern "C"
#endif
/* Runs all scenarios and prints, for each, its figures and the assertions that do not hold. Of those that fail it writes
 * NAME.toml, NAME.svg and NAME.qlog into `folder`; NULL: nothing. Returns how many failed; -1: they could not be run.
 */
int lfn_harness_run(const struct lfn_controller *controller, const char *folder);

#endif
