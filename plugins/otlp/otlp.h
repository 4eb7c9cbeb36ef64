/* SPDX-License-Identifier: Apache-2.0 */
/* otlp.h - the parts of the observer that otlp.c joins. */
#ifndef OTLP_OTLP_H
#define OTLP_OTLP_H

#include <stdbool.h>
#include <stdint.h>
#include <tenrec/error.h>
#include <tenrec/observer_plugin.h>
#include <tenrec/plugin.h>

/* collector.c: the address of a collector. */

struct collector {
    char *url;  /* owns; with a path */
    char *host; /* owns; as the URL has it */
    bool plain; /* http: without TLS */
};

/* Reads "http://collector:4318". Without a path it is /v1/traces. errors: EINVAL, ENOMEM */
tenrec_status collector_parse(const char *address, struct collector *ret, tenrec_error *err);
void collector_finish(struct collector *c);

/* post.c: requests to one collector, over a connection that stays open. One thread at a time. */

struct post;

/* url      borrowed until post_close, like the rest
 * here     the URL is of this host: no proxy is asked
 * ca_file  "": the authorities of the system
 * errors   ENOMEM, EINVAL (a header that is none), EUNSUPPORTED (libcurl cannot) */
tenrec_status post_open(const char *url, bool here, const struct tenrec_option_map *headers,
                        const char *ca_file, struct post **ret, tenrec_error *err);
void post_close(struct post *p); /* NULL is fine */

/* errors: ETIMEDOUT, ECONNECT (also answers after which another try may help), EPERM (refused) */
tenrec_status post_send(struct post *p, const void *body, size_t len, uint32_t timeout_ms,
                        tenrec_error *err);

/* spans_json.c: a batch of spans as a request of the OpenTelemetry protocol in JSON
 * (ExportTraceServiceRequest). */

/* version  of Tenrec
 * ret      owns, free it. Returns NULL without memory. */
char *spans_json(const struct tenrec_span *first, const char *version, size_t *ret_len);

/* queue.c: the spans that wait for a collector, and the thread that sends them in batches. */

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
