/* SPDX-License-Identifier: Apache-2.0 */
/* debug_info.h - counters and states of a worker, for users and tests. */
#ifndef TENREC_OBSERVE_DEBUG_INFO_H
#define TENREC_OBSERVE_DEBUG_INFO_H

#include <tenrec/observe.h>

#define DEBUG_INFO_FUNCTION "tenrec.debug_info"

/* The function of that name: no arguments, returns the map. */
tenrec_status debug_info_answer(struct tenrec_call *call, void *arg, tenrec_error *err);

#endif
