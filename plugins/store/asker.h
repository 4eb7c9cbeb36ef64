/* SPDX-License-Identifier: Apache-2.0 */
/* asker.h - a request that is repeated, at one endpoint after the other, until one answers or the
 * deadline expires. */
#ifndef STORE_ASKER_H
#define STORE_ASKER_H

#include "http.h"

#include "core/base/clock.h"

#include <stdatomic.h>
#include <tenrec/store_plugin.h>

#define ASKER_GAP_US 10000 /* before the first retry; doubles */
#define ASKER_GAP_MOST_US 500000

struct asker {
    struct tenrec_plugin_store *self; /* for the log */
    const char *name;                 /* of the store */
    uint32_t n_endpoints;
    bool is_open;              /* it has been connected before */
    _Atomic uint32_t endpoint; /* that answered last */
    _Atomic bool reached;      /* the last request was answered */
    _Atomic bool is_out;       /* the log has a line about the outage */
};

/* Asks one endpoint once. *ret_sent: the server may have executed the request, besides what its
 * answer says. */
typedef enum http_end asker_once_fn(void *arg, uint32_t endpoint, uint64_t deadline_ns,
                                    bool *ret_sent, tenrec_error *err);

/* lost     NULL for what changes nothing; becomes true if an endpoint may still execute a request
 *          that it did not answer
 * errors   those of the operations of a store */
tenrec_status asker_run(struct asker *a, asker_once_fn *once, void *arg, bool *lost,
                        uint64_t deadline_ns, tenrec_error *err);

/* The next endpoint, unless another thread has moved on already. */
void asker_move(struct asker *a, uint32_t from);

/* The deadline of the answers to an operation with `deadline_ns`, for all its requests. */
uint64_t asker_answer_ns(uint64_t deadline_ns);

/* Sleeps before the next try at a change that others were faster with, not in step with them.
 * errors: ETIMEDOUT */
#define ASKER_CONTEST                                                                              \
    {                                                                                              \
        ASKER_GAP_US / 4, ASKER_GAP_MOST_US / 8                                                    \
    }
tenrec_status asker_contest(struct backoff *gap, uint64_t deadline_ns, tenrec_error *err);

#endif
