/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/call/service.h"
#include "rpc/call/calls.h"

#include <inttypes.h>
#include <stdalign.h>
#include <stdio.h>

static size_t service_room(const struct service *s)
{
    return (s->size + alignof(max_align_t) - 1) / alignof(max_align_t) * alignof(max_align_t);
}

size_t services_size(const struct service *const *table)
{
    size_t n = 0;

    for (int i = 0; i < SERVICES; i++)
        n += service_room(table[i]);
    return n;
}

void services_assign(struct tenrec_worker *w, const struct service *const *table, void *memory)
{
    char *at = memory;

    w->services = table;
    for (int i = 0; i < SERVICES; i++) {
        const struct dispatch_handler *h = table[i]->messages;

        w->service[i] = at;
        at += service_room(table[i]);
        for (; h && h->fn; h++)
            dispatch_handle(&w->calls->dispatch, h);
    }
}

/* Calls `fn` of each row that has one, as long as all succeed. */
#define SERVICES_BEGIN(w, st, fn, ...)                                                             \
    do {                                                                                           \
        for (int i = 0; i < SERVICES && (st) == TENREC_OK; i++)                                    \
            if ((w)->services[i]->fn)                                                              \
                (st) = (w)->services[i]->fn(__VA_ARGS__);                                          \
    } while (0)

/* Calls `fn` of each row that has one, the last first. */
#define SERVICES_END(w, fn, ...)                                                                   \
    do {                                                                                           \
        for (int i = SERVICES; i-- > 0;)                                                           \
            if ((w)->services[i]->fn)                                                              \
                (w)->services[i]->fn(__VA_ARGS__);                                                 \
    } while (0)

tenrec_status services_init(struct tenrec_worker *w, const struct service_config *c,
                            tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    SERVICES_BEGIN(w, st, init, w, c, err);
    return st;
}

void services_finish(struct tenrec_worker *w)
{
    SERVICES_END(w, finish, w);
}

tenrec_status services_start(struct tenrec_worker *w, const struct service_session *s,
                             tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    SERVICES_BEGIN(w, st, start, w, s, err);
    return st;
}

tenrec_status services_run(struct tenrec_worker *w, uint64_t until, tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    SERVICES_BEGIN(w, st, run, w, until, err);
    return st;
}

void services_stop(struct tenrec_worker *w, const tenrec_error *why)
{
    SERVICES_END(w, stop, w, why);
}

void services_close(struct tenrec_worker *w, const tenrec_error *why)
{
    SERVICES_END(w, close, w, why);
}

void services_release(struct tenrec_worker *w)
{
    SERVICES_END(w, release, w);
}

void services_ended(struct tenrec_worker *w)
{
    SERVICES_END(w, ended, w);
}

void services_debug_info(struct tenrec_worker *w, const struct service_outlet *to)
{
    SERVICES_END(w, debug_info, w, to);
}

void service_put(const struct service_outlet *to, const char *key, int64_t n)
{
    char text[24];

    if (to->number) {
        to->number(to->arg, key, n);
        return;
    }
    snprintf(text, sizeof text, "%" PRId64, n);
    to->text(to->arg, key, text);
}
