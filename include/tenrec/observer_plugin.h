/* SPDX-License-Identifier: Apache-2.0 */
/* tenrec/observer_plugin.h - the header of an observer plugin.
 *
 * An observer passes the measurements of workers to a monitoring system, in the format of that
 * system. It serves metrics to a reader, or sends spans of calls to a collector. It is a plugin of
 * the kind TENREC_PLUGIN_OBSERVER, a shared object that exports only these three symbols:
 *
 *     tenrec_plugin             const data, as in tenrec/plugin.h
 *     tenrec_construct_options  check and complete one filled options struct
 *     tenrec_init_observer      open the observer for an address
 *
 * [OB-1] `observe.metrics_observer` and `observe.traces_observer` in the configuration name an
 * observer: an entry of `observers:`, or else the plugin of that name. All workers of a process
 * with the same observer and address share one observer. The child of a fork opens its own. The
 * core logs the failure of an observer, which stops no worker.
 *
 * [OB-2] An observer may wait only on its own threads, never in tenrec_init_observer or `span`. */
#ifndef TENREC_OBSERVER_PLUGIN_H
#define TENREC_OBSERVER_PLUGIN_H

#include <tenrec/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tenrec_observer;

/* ---- spans -------------------------------------------------------------- */

/* The worker of spans. The core allocates it. Grows at its end. */
struct tenrec_origin {
    const char *service; /* `observe.traces_service` */
    const char *worker;
    const char *host;
    int64_t process;
};

/* As OpenTelemetry numbers them. */
enum tenrec_span_kind {
    TENREC_SPAN_SERVER = 2, /* the callee's side of a call */
    TENREC_SPAN_CLIENT = 3, /* the caller's side */
};

/* One side of a sampled call that has ended. The core allocates it. Grows at its end. */
struct tenrec_span {
    struct tenrec_span *next; /* of the observer that has the span */
    const struct tenrec_origin *origin;
    const char *function;
    const char *peer;          /* the called worker; NULL at the callee */
    uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC */
    uint32_t kind;             /* enum tenrec_span_kind */
    int32_t status;            /* tenrec_status of the call */
    uint8_t trace_id[16], span_id[8];
    uint8_t parent[8]; /* zeros: the first span of its trace */
    uint8_t flags;     /* of W3C Trace Context */
    bool remote;       /* the parent belongs to the caller */
};

/* ---- metrics ------------------------------------------------------------ */

/* Bucket i counts durations of more than 2^(i-1) and at most 2^i microseconds. The last bucket
 * also counts longer durations. */
#define TENREC_DURATION_BUCKETS 26

/* The calls of one function, to one worker or by this worker, that ended with one status. Never
 * grows: it is passed in arrays. */
struct tenrec_series {
    const char *worker;
    const char *function;
    const char *peer; /* the called worker; NULL at the callee */
    uint64_t n, sum_ns;
    uint64_t bucket[TENREC_DURATION_BUCKETS];
    uint32_t kind;  /* enum tenrec_span_kind: the side of the call */
    int32_t status; /* tenrec_status */
};

/* A number of a worker's debug info. Never grows: it is passed in arrays. */
struct tenrec_reading {
    const char *worker;
    const char *key;
    uint64_t value;
};

/* All workers of this process at one time. Grows at its end. */
struct tenrec_snapshot {
    const struct tenrec_series *series;
    size_t n_series;
    const struct tenrec_reading *readings;
    size_t n_readings;
    uint64_t dropped; /* durations without a series, as there are too many */
};

/* ---- the observer ------------------------------------------------------- */

/* The operations of an observer. Every slot is optional but `close`. Grows at its end. */
struct tenrec_observer_ops {
    uint32_t size; /* sizeof(struct tenrec_observer_ops) */
    uint32_t reserved;

    /* [OB-3] Ends all threads of the observer and frees self->impl. Called once, last, after
     * `leave` for each origin. It may block for at most a second. */
    void (*close)(struct tenrec_observer *self);

    /* [OB-4] Takes a span that has ended, and calls host->span_done for it once. Several threads
     * may call it at once. NULL: the observer takes no spans. */
    void (*span)(struct tenrec_observer *self, struct tenrec_span *s);

    /* [OB-5] A worker stops. Within a second, deliver or drop the spans of `origin` that the
     * observer has. After the return no span may have this origin; set it to NULL in spans that
     * are still being sent. NULL: the observer queues nothing. */
    void (*leave)(struct tenrec_observer *self, const struct tenrec_origin *origin);
};

#define TENREC_PRIVATE_FOLDER_MAX 48 /* leaves room for names of Unix sockets in it */

/* Services of the core for an observer plugin, from any thread until `close` returns. Grows at its
 * end only. */
struct tenrec_observer_host {
    TENREC_PLUGIN_HOST
    const char *version; /* of Tenrec, such as "1.2.3" */

    /* [OB-6] Reads the metrics of all workers of this process. snapshot_free frees them.
     *
     * errors   ENOMEM */
    tenrec_status (*snapshot)(struct tenrec_observer *self, struct tenrec_snapshot **ret,
                              tenrec_error *err);
    void (*snapshot_free)(struct tenrec_observer *self, struct tenrec_snapshot *s);

    /* [OB-7] Frees the span. If its origin is not NULL, counts it there as sent (accepted by the
     * receiver) or as dropped. */
    void (*span_done)(struct tenrec_observer *self, struct tenrec_span *s, bool sent);

    /* [OB-8] Returns the folder, of mode 0700, in which the processes of this user find each
     * other: $XDG_RUNTIME_DIR, or else /run/user/UID, or else a folder in /tmp. Names in it begin
     * with "tenrec-".
     *
     * ret      a text of less than TENREC_PRIVATE_FOLDER_MAX bytes
     * errors   EOS */
    tenrec_status (*private_folder)(struct tenrec_observer *self,
                                    char ret[TENREC_PRIVATE_FOLDER_MAX], tenrec_error *err);

    /* Returns true if the text of "HOST", "HOST:PORT" or "SCHEME://HOST:PORT" alone names this
     * host ("localhost", 127.0.0.0/8, ::1). A connection to it never leaves the host, so it uses
     * no proxy. */
    bool (*is_this_host)(struct tenrec_observer *self, const char *address);
};

/* One open observer. The core allocates it; init_observer sets ops and impl. Grows at its end. */
struct tenrec_observer {
    const struct tenrec_observer_ops *ops;
    void *impl;
    const struct tenrec_observer_host *host; /* set already, like log_part */
    const char *log_part;                    /* of its log lines */
};

struct tenrec_observer_init {
    uint32_t size; /* sizeof(struct tenrec_observer_init) */
    uint32_t reserved;
    const char *address; /* as in the configuration; lives as long as the observer */
    const void *options; /* yours, lives as long as the observer */
};

/* [OB-9] Opens the observer. After a failure it frees all resources, since close is not called.
 * The text of EINVAL names the error in the address. Any thread may call it, one at a time. */
typedef tenrec_status tenrec_init_observer_fn(const struct tenrec_observer_init *in,
                                              struct tenrec_observer *self, tenrec_error *err);

#define TENREC_OBSERVER_PLUGIN_HEADER TENREC_PLUGIN_HEADER_OF(TENREC_PLUGIN_OBSERVER)

/* A plugin that defines it with another signature does not compile. */
extern TENREC_EXPORT tenrec_init_observer_fn tenrec_init_observer;

#ifdef __cplusplus
}
#endif

#endif
