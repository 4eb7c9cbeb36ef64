/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/listener.h"

#include <stdlib.h>
#include <sys/random.h>

const struct registration *wanted_find(const struct wanted *w, uint64_t id)
{
    for (size_t i = 0; i < w->n; i++)
        if (w->list[i].id == id)
            return &w->list[i];
    return NULL;
}

/* Draws an id that only the answer to the caller contains: a process on the caller's
 * host cannot guess the id, and so not take the place of one of the pipe's connections. */
static bool wanted_draw_id(const struct wanted *w, uint64_t *ret)
{
    do {
        if (getrandom(ret, sizeof *ret, 0) != (ssize_t)sizeof *ret)
            return false;
    } while (wanted_find(w, *ret));
    return true;
}

tenrec_status wanted_add(struct wanted *w, struct pipe *p, enum conn_role role, uint64_t *ret_id)
{
    if (w->n == w->cap) {
        size_t cap = w->cap ? 2 * w->cap : 8;
        struct registration *bigger = realloc(w->list, cap * sizeof *bigger);

        if (!bigger)
            return TENREC_ENOMEM;
        w->list = bigger;
        w->cap = cap;
    }
    if (!wanted_draw_id(w, ret_id))
        return TENREC_EOS;
    w->list[w->n++] = (struct registration){ *ret_id, p, role };
    return TENREC_OK;
}

void wanted_withdraw(struct wanted *w, const struct pipe *p)
{
    size_t n = 0;

    for (size_t i = 0; i < w->n; i++)
        if (w->list[i].pipe != p)
            w->list[n++] = w->list[i];
    w->n = n;
}

void wanted_remove(struct wanted *w, uint64_t id)
{
    for (size_t i = 0; i < w->n; i++)
        if (w->list[i].id == id) {
            w->list[i] = w->list[--w->n];
            return;
        }
}

void wanted_finish(struct wanted *w)
{
    free(w->list);
}
