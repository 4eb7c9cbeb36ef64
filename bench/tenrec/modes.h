/* SPDX-License-Identifier: Apache-2.0 */
/* modes.h - the measurements of tenrec_bench. */
#ifndef TENREC_BENCH_MODES_H
#define TENREC_BENCH_MODES_H

#include "../driver.h"

/* calls.c: between two workers. */
extern const struct way calls_uv, calls_shm, calls_pool_uv, calls_pool_shm, calls_keep_uv,
    calls_keep_shm, calls_secret, calls_tls, calls_ucx, calls_layers, calls_trace, calls_meter,
    calls_limit, calls_traces, calls_durations, calls_recorder;

/* regions.c: memory of the callee. */
extern const struct way regions_uv, regions_shm, regions_ucx, regions_register;

/* start.c: the time from the first call of tenrec_init_rpc to the last return. */
int start_main(const char *via);
/* The time of the first call between two workers, which makes their connections. */
int connect_main(const char *via);

/* beside.c: small calls beside large tensors that go "out", come "in", or "both". */
int beside_main(const char *via, const char *where);

/* rest.c: CPU, threads and memory of a worker after its last call. `moment`: so soon
 * afterwards that the worker may still poll. */
int rest_main(const char *via, bool moment);
/* The idle worker: tenrec_bench rest STORE VIA RANK FD. */
int rest_exec(char **argv);

#endif
