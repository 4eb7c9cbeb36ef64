/* SPDX-License-Identifier: Apache-2.0 */
/* tenrec/tenrec.h - calls, values, futures, references and groups: for most programs.
 *
 * The rest is included where it is used:
 *
 *     tenrec/region.h                         memory that peers read and write
 *     tenrec/weights.h                        versions of weights, from trainers to generators
 *     tenrec/store.h                          stores
 *     tenrec/observe.h, tenrec/profiler.h     counters and traces of a worker
 *     tenrec/trace.h                          traces of other programs (W3C traceparent)
 *     tenrec/testkit.h                        tests of programs
 *     tenrec/plugin.h, tenrec/store_plugin.h  backends and stores as plugins
 *     tenrec/backend.h, tenrec/chain.h        backends of this process, messages without RPC
 */
#ifndef TENREC_TENREC_H
#define TENREC_TENREC_H

#include <tenrec/call.h>
#include <tenrec/config.h>
#include <tenrec/group.h>
#include <tenrec/log.h>
#include <tenrec/rpc.h>
#include <tenrec/rref.h>
#include <tenrec/version.h>

#endif
