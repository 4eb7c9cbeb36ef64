/* SPDX-License-Identifier: Apache-2.0 */
/* queue.h - the spans that wait for a collector, and the thread that sends them in batches. */
#ifndef OTLP_QUEUE_H
#define OTLP_QUEUE_H

#include <tenrec/observer_plugin.h>

enum {
    QUEUE_MAX = 4096, /* spans; more are dropped */
    QUEUE_BATCH_MAX = 512,
    QUEUE_POST_MS = 1000, /* a batch may take; so an end waits no longer */
    QUEUE_PERIOD_MS = 1000,
    QUEUE_RETRY_MAX_MS = 30000,
};

struct queue;

/* Sends a request, and returns after the collector has accepted it. On the thread of the queue.
 * errors: ETIMEDOUT, ECONNECT; EPERM, EPROTOCOL, EINVAL and EUNSUPPORTED: another try will not help
 */
typedef tenrec_status queue_post_fn(void *arg, const void *body, size_t len, uint32_t timeout_ms,
                                    tenrec_error *err);

/* errors: ENOMEM, EOS */
tenrec_status queue_open(struct tenrec_observer *self, queue_post_fn *post, void *arg,
                         struct queue **ret, tenrec_error *err);

/* After queue_leave for each origin. Within a second. */
void queue_close(struct queue *q);

/* The operations `span` and `leave` of an observer. */
void queue_add(struct queue *q, struct tenrec_span *s);
void queue_leave(struct queue *q, const struct tenrec_origin *origin);

#endif
