/* SPDX-License-Identifier: Apache-2.0 */
/* function.h - the table of functions that other workers may call, by name. */
#ifndef TENREC_CALL_FUNCTION_H
#define TENREC_CALL_FUNCTION_H

#include "core/base/hash.h"

#include <pthread.h>
#include <stdatomic.h>
#include <tenrec/rpc.h>

#define FUNCTION_RESERVED_PREFIX "tenrec." /* of names that programs may not register */

/* Makes a value of a worker and passes it to `fn`, which borrows it: what tenrec_worker_inspect
 * reads, and a function of the worker answers. */
typedef tenrec_status value_fn(void *arg, const struct tenrec_value *v, tenrec_error *err);
typedef tenrec_status worker_value_fn(struct tenrec_worker *w, value_fn *fn, void *arg,
                                      tenrec_error *err);

/* A value_fn: answers the call `arg`. */
tenrec_status function_return(void *arg, const struct tenrec_value *v, tenrec_error *err);

struct mailbox;
struct pool_task;
struct rule;
struct rules;

struct function {
    char *name; /* owns */
    size_t len;
    tenrec_function_fn *fn;
    void *arg;
    uint32_t flags;
    struct mailbox *mailbox; /* owns; of TENREC_MAILBOX, else NULL */
    const struct rule *rule; /* decides about its callers; NULL: every caller may call it */
    UT_hash_handle hh;
};

struct functions {
    pthread_rwlock_t lock; /* guards the table; entries live as long as the table */
    struct function *by_name;
    const struct function *_Atomic last; /* cache: calls often repeat a name */
    const struct rules *rules;           /* borrows; set before the first is added; NULL: none */
};

void functions_init(struct functions *f);
void functions_finish(struct functions *f);

/* errors: EEXIST, ENOMEM */
tenrec_status functions_add(struct functions *f, const char *name, tenrec_function_fn *fn,
                            void *arg, uint32_t flags, tenrec_error *err);

/* Closes the mailboxes, and returns the calls that they held; opens them again. */
struct pool_task *functions_close(struct functions *f);
void functions_open(struct functions *f);

/* functions_find returns the function (borrowed until functions_finish), or NULL; functions_none
 * then writes the error, with the name of the `worker` that
 * lacks it and the nearest name. */
const struct function *functions_find(struct functions *f, const char *name, size_t len);
tenrec_status functions_none(struct functions *f, const char *worker, const char *name, size_t len,
                             tenrec_error *err);

#endif
