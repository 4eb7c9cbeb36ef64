/* SPDX-License-Identifier: Apache-2.0 */
/* service.h - what a worker offers beside calls: references, its group, a profiler, metrics, a
 * flight recorder. Each service is a row of one table (libtenrec/services.c), over which the worker
 * loops; a room keeps the state of its service and no other room reads it.
 *
 * The functions of a row run one after another, in the order of the table where they begin
 * something and in the reverse where they end it. Each may be NULL. */
#ifndef TENREC_CALL_SERVICE_H
#define TENREC_CALL_SERVICE_H

#include "rpc/future/worker.h"

#include <stdbool.h>
#include <tenrec/agent.h>
#include <tenrec/message.h>

/* ---- dispatch.c: passes messages that arrive to their handlers --------------------------------
 */

struct tenrec_tensor;
/* Serves a message of one type. Takes msg. */
typedef void dispatch_fn(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg);

enum { DISPATCH_HANDLERS_MAX = 12, DISPATCH_INTO_MAX = 64 };

/* The memory for the tensors of a message, the first `n` of them. */
struct dispatch_into {
    size_t n;
    struct tenrec_tensor *tensor[DISPATCH_INTO_MAX]; /* shared */
};

/* Finds the memory for tensors of a message of one type, before their bytes are received.
 *
 * ret      empty: unless it is filled the tensors are received like those of a call. Shares; must
 *          fit the tensors; also after an error
 * errors   any: the message is refused with it */
typedef tenrec_status dispatch_into_fn(struct tenrec_worker *w, tenrec_peer from,
                                       const struct tenrec_msg *msg, struct dispatch_into *ret,
                                       tenrec_error *err);

/* Handlers of messages that are neither calls nor answers of calls, registered by other rooms
 * before the worker starts. */
struct dispatch {
    struct dispatch_handler {
        int32_t type;
        dispatch_fn *fn;
        dispatch_into_fn *into; /* NULL: received like the tensors of a call */
    } handler[DISPATCH_HANDLERS_MAX];
    unsigned n;
};

void dispatch_handle(struct dispatch *d, const struct dispatch_handler *h);

/* Asks the handler of a message for memory; *ret is empty if it has none of its own. */
tenrec_status dispatch_into(struct tenrec_worker *w, tenrec_peer from, const struct tenrec_msg *msg,
                            struct dispatch_into *ret, tenrec_error *err);

/* ---- asks.c: messages that wait until our view of a dynamic group is as new as their sender's. A
 * list, without locks. The version is a claim of the sender, so it may never be reached ----------
 */

/* The first part of a waiting message. */
struct ask {
    struct ask *next;
    tenrec_peer from;
    int64_t version;
    uint64_t deadline_ns; /* of the wait; CLOCK_NEVER: none */
    /* The wait is over. No lock held; frees the ask. */
    void (*ready)(struct tenrec_worker *w, struct ask *a);
};

/* A member has one or two requests at a time, and a gather or reference for each of its threads.
 * All senders that are no members share those of strangers. */
#define ASKS_OF_MEMBER 64
#define ASKS_OF_STRANGERS 64

/* The oldest first. */
struct asks {
    struct ask *first;
};

/* Adds `a` (taken). If the sender has too many, returns its oldest, which is ready then; else
 * NULL. */
struct ask *asks_add(struct asks *all, struct ask *a);
/* Removes the requests that `version` satisfies, or whose wait ends at `now_ns`; or `every`
 * request. */
struct ask *asks_take_ripe(struct asks *all, int64_t version, uint64_t now_ns, bool every);
/* Returns false if there is none, and lowers *next_ns to the next end of a wait. */
bool asks_have_ripe(const struct asks *all, int64_t version, uint64_t now_ns, uint64_t *next_ns);

/* ---- service.c --------------------------------------------------------------------------------
 */

struct config_observe;
struct config_settings;
struct tenrec_config;

/* Of a new worker; borrowed during the call. */
struct service_config {
    const struct tenrec_config *config;
    const struct config_settings *settings;
    const struct config_observe *observe;
};

/* What a start of a worker has agreed with its group. */
struct service_session {
    const struct config_observe *observe; /* borrowed for the life of the worker */
    const struct tenrec_member *member;   /* `n` members; borrowed during the call */
    size_t n;
    uint64_t incarnation;
};

/* Where debug info goes: numbers as numbers, or all as texts. */
struct service_outlet {
    void (*number)(void *arg, const char *key, int64_t n); /* NULL: numbers as texts */
    tenrec_sink_fn *text;
    void *arg;
};
void service_put(const struct service_outlet *to, const char *key, int64_t n);

struct service {
    const char *name;
    size_t size; /* of its state in each worker, which begins as zeroes */

    /* A new worker: nothing of it runs. `finish` follows also a failed init. */
    tenrec_status (*init)(struct tenrec_worker *w, const struct service_config *c,
                          tenrec_error *err);
    void (*finish)(struct tenrec_worker *w);

    /* The worker starts: no message has arrived yet. The functions that end a start follow also
     * a start that failed, or that never began. */
    tenrec_status (*start)(struct tenrec_worker *w, const struct service_session *s,
                           tenrec_error *err);
    /* The worker runs: messages arrive. */
    tenrec_status (*run)(struct tenrec_worker *w, uint64_t until, tenrec_error *err);
    /* No call may begin any more; messages still arrive. */
    void (*stop)(struct tenrec_worker *w, const tenrec_error *why);
    /* No message arrives any more, and no thread is inside the worker. */
    void (*close)(struct tenrec_worker *w, const tenrec_error *why);
    /* The chain is closed; the loop is not. */
    void (*release)(struct tenrec_worker *w);
    /* All served calls have ended, or the shutdown's limit has expired. */
    void (*ended)(struct tenrec_worker *w);

    /* The worker is entered. */
    void (*debug_info)(struct tenrec_worker *w, const struct service_outlet *to);

    /* Messages for it; the last entry has no function. */
    const struct dispatch_handler *messages;
};

/* Places the states in `memory` (zeroed, of services_size bytes), and registers the messages. */
size_t services_size(const struct service *const *table);
void services_assign(struct tenrec_worker *w, const struct service *const *table, void *memory);

tenrec_status services_init(struct tenrec_worker *w, const struct service_config *c,
                            tenrec_error *err);
void services_finish(struct tenrec_worker *w);
tenrec_status services_start(struct tenrec_worker *w, const struct service_session *s,
                             tenrec_error *err);
tenrec_status services_run(struct tenrec_worker *w, uint64_t until, tenrec_error *err);
void services_stop(struct tenrec_worker *w, const tenrec_error *why);
void services_close(struct tenrec_worker *w, const tenrec_error *why);
void services_release(struct tenrec_worker *w);
void services_ended(struct tenrec_worker *w);
void services_debug_info(struct tenrec_worker *w, const struct service_outlet *to);

#endif
