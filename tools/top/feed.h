/* SPDX-License-Identifier: Apache-2.0 */
/* feed.h - a thread that takes a sample each interval, so that the screen never waits for a worker.
 */
#ifndef TENREC_TOOLS_TOP_FEED_H
#define TENREC_TOOLS_TOP_FEED_H

#include "top/sampler.h"

#include <pthread.h>

struct feed {
    struct sampler *sampler; /* borrowed; used by the thread alone */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;    /* a new sample, or an order; monotonic */
    struct sample before, now; /* the two latest; under the lock, as all below */
    bool has_before, has_now, stop, time_asked;
    uint64_t version;     /* of the samples and the note */
    char note[256];       /* the result of the last order; "" */
    tenrec_status failed; /* the thread has ended, as there is no memory */
};

/* errors: EOS */
tenrec_status feed_start(struct feed *f, struct sampler *s, tenrec_error *err);

/* Orders the thread to turn the durations of all workers on. */
void feed_time(struct feed *f);

/* Returns false if the thread still waits for an answer after `ms`: then the process has to end
 * without freeing what the thread uses. */
bool feed_stop(struct feed *f, int ms);

#endif
