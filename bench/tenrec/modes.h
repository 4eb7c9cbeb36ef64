/* SPDX-License-Identifier: Apache-2.0 */
/* modes.h - what tenrec_bench can measure. */
#ifndef TENREC_BENCH_MODES_H
#define TENREC_BENCH_MODES_H

#include "../driver.h"

/* calls.c: between two workers. */
extern const struct way calls_uv, calls_shm, calls_keep_uv, calls_keep_shm;

/* start.c: from the first call of tenrec_init_rpc to the last return. */
int start_main(const char *via);

/* rest.c: a worker after its last call: CPU, threads, memory. `moment`: so soon
 * after it that it may still look for more, at most. */
int rest_main(const char *via, bool moment);
/* The program that rests: tenrec_bench rest STORE VIA RANK FD. */
int rest_exec(char **argv);

#endif
