/* SPDX-License-Identifier: Apache-2.0 */
/* link_service.c - links as a service of a worker. */
#include "rpc/link/link.h"

#include "core/base/memory.h"
#include "rpc/link/links.h"

static tenrec_status link_service_init(struct tenrec_worker *w, const struct service_config *c,
                                       tenrec_error *err)
{
    (void)c;
    *link_table_of(w) = link_table_new();
    return *link_table_of(w) ? TENREC_OK : memory_fail(err);
}

static void link_service_finish(struct tenrec_worker *w)
{
    if (*link_table_of(w))
        link_table_drop(*link_table_of(w));
}

static void link_service_set(struct tenrec_worker *w, struct tenrec_worker *running)
{
    struct link_table *t = *link_table_of(w);

    pthread_mutex_lock(&t->lock);
    t->worker = running;
    pthread_mutex_unlock(&t->lock);
}

static tenrec_status link_service_start(struct tenrec_worker *w, const struct service_session *s,
                                        tenrec_error *err)
{
    (void)s;
    (void)err;
    link_service_set(w, w);
    return TENREC_OK;
}

static void link_service_stop(struct tenrec_worker *w, const tenrec_error *why)
{
    (void)why;
    link_service_set(w, NULL);
}

static void link_service_release(struct tenrec_worker *w)
{
    link_table_clear(*link_table_of(w));
}

static void link_service_debug_info(struct tenrec_worker *w, const struct service_outlet *to)
{
    struct link_table *t = *link_table_of(w);
    int64_t made = 0, accepted = 0;

    pthread_mutex_lock(&t->lock);
    for (const struct tenrec_link *l = t->first; l; l = l->next) {
        made += l->id >= 0 && l->holders > 0;
        accepted += l->id >= 0 && l->holders == 0;
    }
    pthread_mutex_unlock(&t->lock);
    service_put(to, "link.num_links", made);
    service_put(to, "link.num_accepted", accepted);
}

const struct service link_service = {
    .name = "link",
    .size = sizeof(struct link_table *),
    .init = link_service_init,
    .finish = link_service_finish,
    .start = link_service_start,
    .stop = link_service_stop,
    .release = link_service_release,
    .debug_info = link_service_debug_info,
    .messages = (const struct dispatch_handler[]){ { TENREC_MSG_LINK, link_arrived }, { 0 } },
};
