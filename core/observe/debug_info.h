/* SPDX-License-Identifier: Apache-2.0 */
/* debug_info.h - counters and states of a worker, for people and for tests. */
#ifndef TENREC_OBSERVE_DEBUG_INFO_H
#define TENREC_OBSERVE_DEBUG_INFO_H

#include <tenrec/observe.h>

#define DEBUG_INFO_FUNCTION "tenrec.debug_info"

/* The function of that name: takes nothing, answers with the map. */
tenrec_status debug_info_answer(struct tenrec_call *call, void *arg, tenrec_error *err);

#endif
