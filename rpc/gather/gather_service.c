/* SPDX-License-Identifier: Apache-2.0 */
/* gather_service.c - the gathers as a service of a worker. */
#include "core/base/memory.h"
#include "rpc/gather/gather.h"

#include <stdlib.h>

static tenrec_status gather_service_init(struct tenrec_worker *w, const struct service_config *c,
                                         tenrec_error *err)
{
    (void)c, (void)err;
    pthread_mutex_init(&gathers_of(w)->lock, NULL);
    gathers_of(w)->degree = GATHER_DEGREE;
    return TENREC_OK;
}

static void gathers_reset(struct gathers *g)
{
    gather_sets_drop(&g->sets);
    participants_drop(g->whole);
    g->whole = NULL;
    while (g->open) {
        struct gather *one = g->open;
        g->open = one->next;
        gather_drop(one);
    }
    g->n_open = 0;
}

static void gather_service_finish(struct tenrec_worker *w)
{
    gathers_reset(gathers_of(w));
    pthread_mutex_destroy(&gathers_of(w)->lock);
}

/* Forgets the numbers of all sets: with a new incarnation the others count from 0. */
static tenrec_status gather_service_start(struct tenrec_worker *w, const struct service_session *s,
                                          tenrec_error *err)
{
    (void)s, (void)err;
    gathers_reset(gathers_of(w));
    return TENREC_OK;
}

const struct service gather_service = {
    .name = "gather",
    .size = sizeof(struct gathers),
    .init = gather_service_init,
    .finish = gather_service_finish,
    .start = gather_service_start,
    .stop = gather_fail_all,
    .close = gather_fail_all, /* those since */
    .messages = (const struct dispatch_handler[]){ { TENREC_MSG_GATHER, gather_arrived }, { 0 } },
};
