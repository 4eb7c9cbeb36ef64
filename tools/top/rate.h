/* SPDX-License-Identifier: Apache-2.0 */
/* rate.h - the load of workers and functions between two samples. Numbers that are not known are
 * NAN. */
#ifndef TENREC_TOOLS_TOP_RATE_H
#define TENREC_TOOLS_TOP_RATE_H

#include "top/sample.h"

/* Of the calls in the interval, of one side. */
struct rate_side {
    double per_s, p50_s, p99_s;
};

struct rate_error {
    char status[32];
    int64_t calls;
};

enum { RATE_ERRORS = 8 };

/* A function in all workers. */
struct rate_function {
    char name[256];
    struct rate_side client, server;
    struct rate_error error[RATE_ERRORS]; /* in the interval, of both sides */
    int n_errors;
};

struct rate_worker {
    const struct sample_worker *worker; /* borrowed from the later sample */
    double made_per_s, served_per_s;
    struct rate_side client, server; /* per_s: as the durations count them */
};

/* `before` is NULL in the first sample. */
void rate_of_worker(const struct sample_worker *before, const struct sample_worker *now,
                    struct rate_worker *ret);

/* The functions that workers called between two samples or ever, by name. *ret is the caller's, to
 * be freed. Returns their number; 0 also without memory. */
size_t rate_functions(const struct sample *before, const struct sample *now,
                      struct rate_function **ret);

#endif
