/* SPDX-License-Identifier: Apache-2.0 */
/* readings.h - the debug info of all workers of the process, read at one time, as numbers. */
#ifndef TENREC_METRICS_READINGS_H
#define TENREC_METRICS_READINGS_H

#include "core/base/arena.h"

#include <stdbool.h>
#include <tenrec/rpc.h>

struct reading {
    const char *worker;
    const char *key; /* as in docs/observe.md */
    uint64_t value;
};

struct readings {
    struct arena texts;
    struct reading *v;
    size_t n, room;
    const char *worker; /* of the worker that is read now */
    bool failed;        /* no memory */
};

/* readings_finish is due whatever it returns. Returns false without memory. */
bool readings_make(struct readings *r);
void readings_finish(struct readings *r);

/* The next reading of a key, from *at on, which moves behind it; NULL: no more. */
const struct reading *readings_next(const struct readings *r, const char *key, size_t *at);

#endif
