/* SPDX-License-Identifier: Apache-2.0 */
#include "relay.h"

#include "../support/functions.h"

#include "../testing.h"

#include <pthread.h>
#include <stdlib.h>
#include <tenrec/trace.h>

enum { WAY_MAX = 8 };

/* Answers with the context of `c` and then those of the nested call, which may be NULL. */
static tenrec_status relay_answer(struct tenrec_call *c, const struct tenrec_value *nested,
                                  tenrec_error *err)
{
    char text[TENREC_TRACEPARENT_SIZE] = "none";
    struct tenrec_value all[WAY_MAX], list;
    size_t n = 0;

    tenrec_call_trace(c, text);
    all[n++] = tenrec_value_text(text);
    for (size_t i = 0; nested && i < nested->n && n < WAY_MAX; i++)
        all[n++] = nested->u.array[i];
    list = tenrec_value_array(all, n);
    return tenrec_call_return(c, &list, err);
}

/* Returns false at the end of the way. */
static bool next_of(const struct tenrec_call *c, const char **to, const struct tenrec_value **args,
                    size_t *n)
{
    *args = tenrec_call_args(c, n);
    if (*n == 0)
        return false;
    *to = (*args)[0].u.text;
    ++*args;
    --*n;
    return true;
}

static tenrec_status relay(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_value *nested = NULL;
    const struct tenrec_value *args;
    const char *to;
    size_t n;
    tenrec_status st = TENREC_OK;

    (void)arg;
    if (next_of(c, &to, &args, &n))
        st = tenrec_rpc_sync(tenrec_call_worker(c), to, tenrec_call_function(c), args, n, NULL,
                             &nested, err);
    if (st == TENREC_OK)
        st = relay_answer(c, nested, err);
    tenrec_value_drop(nested);
    return st;
}

static void relayed(struct tenrec_future *f, void *arg)
{
    struct tenrec_call *c = arg;
    const tenrec_error *why = tenrec_future_error(f);
    tenrec_error err;

    if (!why && relay_answer(c, tenrec_future_value(f), &err) != TENREC_OK)
        why = &err;
    tenrec_call_finish(c, why);
}

static tenrec_status relay_inline(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    const struct tenrec_value *args;
    struct tenrec_future *f;
    const char *to;
    size_t n;
    tenrec_status st;

    (void)arg;
    if (!next_of(c, &to, &args, &n)) {
        st = relay_answer(c, NULL, err);
        if (st == TENREC_OK)
            tenrec_call_finish(c, NULL);
        return st;
    }
    st = tenrec_rpc_async(tenrec_call_worker(c), to, tenrec_call_function(c), args, n, NULL, &f,
                          err);
    if (st != TENREC_OK)
        return st;
    st = tenrec_future_add_callback(f, relayed, c, err);
    tenrec_future_drop(f);
    return st;
}

static void *relay_thread(void *arg)
{
    struct tenrec_call *c = arg;
    char text[TENREC_TRACEPARENT_SIZE];
    struct tenrec_trace_scope scope;
    tenrec_error err;
    tenrec_status st;

    st = tenrec_trace_enter(tenrec_call_trace(c, text) ? text : NULL, &scope, &err);
    if (st == TENREC_OK) {
        st = relay(c, NULL, &err);
        tenrec_trace_leave(&scope);
    }
    tenrec_call_finish(c, st == TENREC_OK ? NULL : &err);
    return NULL;
}

static tenrec_status relay_later(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    pthread_t thread;

    (void)arg;
    if (pthread_create(&thread, NULL, relay_thread, c) != 0)
        return tenrec_fail(err, TENREC_EOS, "cannot start a thread");
    pthread_detach(thread);
    return TENREC_OK;
}

void relay_register(struct tenrec_worker *w, size_t rank)
{
    (void)rank;
    functions_offer(w, "relay", relay, TENREC_POOL);
    functions_offer(w, "relay_inline", relay_inline, TENREC_INLINE | TENREC_LATER);
    functions_offer(w, "relay_later", relay_later, TENREC_LATER);
}
