/* SPDX-License-Identifier: Apache-2.0 */
/* region_service.c - regions as a service of a worker. */
#include "rpc/region/region.h"

#include "rpc/region/region_copy.h"

#include "core/base/memory.h"

static tenrec_status region_service_init(struct tenrec_worker *w, const struct service_config *c,
                                         tenrec_error *err)
{
    (void)c;
    *region_table_of(w) = region_table_new();
    return *region_table_of(w) ? TENREC_OK : memory_fail(err);
}

static void region_service_finish(struct tenrec_worker *w)
{
    if (*region_table_of(w))
        region_table_drop(*region_table_of(w));
}

static tenrec_status region_service_start(struct tenrec_worker *w, const struct service_session *s,
                                          tenrec_error *err)
{
    struct region_table *t = *region_table_of(w);
    uint64_t life;
    tenrec_status st = region_random(&life, sizeof life, err);

    (void)s;
    if (st != TENREC_OK)
        return st;
    pthread_mutex_lock(&t->lock);
    t->life = life;
    pthread_mutex_unlock(&t->lock);
    return TENREC_OK;
}

static void region_service_close(struct tenrec_worker *w, const tenrec_error *why)
{
    (void)why;
    region_copies_close(*region_table_of(w));
}

enum { LISTED_MAX = 32, LISTED_BYTES = 112 }; /* regions in the list, and of each text */

/* "3: 4096 bytes, read and write, 1 transfer, revoked" */
static int region_text(const struct tenrec_region *r, char *to, size_t room)
{
    static const char *const rights[] = { "none", "read", "write", "read and write" };

    return snprintf(to, room, "%llu: %llu bytes, %s, %zu transfer%s%s",
                    (unsigned long long)r->ref.number, (unsigned long long)r->ref.length,
                    rights[r->ref.rights & (TENREC_REGION_READ | TENREC_REGION_WRITE)], r->n_pins,
                    r->n_pins == 1 ? "" : "s", r->revoked ? ", revoked" : "");
}

/* The lock is held. */
static void region_list(const struct region_table *t, char *to, size_t room)
{
    size_t listed = 0, n = 0;

    *to = '\0';
    for (size_t i = 0; i < t->n; i++) {
        if (!t->slot[i].region)
            continue;
        if (listed++ == LISTED_MAX) {
            snprintf(to + n, room - n, "; ...");
            return;
        }
        n += (size_t)snprintf(to + n, room - n, "%s", n ? "; " : "");
        n += (size_t)region_text(t->slot[i].region, to + n, room - n);
    }
}

static void region_service_debug_info(struct tenrec_worker *w, const struct service_outlet *to)
{
    struct region_table *t = *region_table_of(w);
    uint64_t regions = 0, transfers = 0, stale, repeated;
    char list[LISTED_MAX * LISTED_BYTES + 8];

    pthread_mutex_lock(&t->lock);
    for (size_t i = 0; i < t->n; i++) {
        regions += t->slot[i].region != NULL;
        transfers += t->slot[i].region ? t->slot[i].region->n_pins : 0;
    }
    region_list(t, list, sizeof list);
    stale = t->n_stale;
    repeated = t->n_repeated;
    pthread_mutex_unlock(&t->lock);
    service_put(to, "region.num_regions", (int64_t)regions);
    service_put(to, "region.num_transfers", (int64_t)transfers);
    service_put(to, "region.stale", (int64_t)stale);
    service_put(to, "region.repeated", (int64_t)repeated);
    to->text(to->arg, "region.list", list);
}

const struct service region_service = {
    .name = "region",
    .size = sizeof(struct region_table *),
    .init = region_service_init,
    .finish = region_service_finish,
    .start = region_service_start,
    .close = region_service_close,
    .debug_info = region_service_debug_info,
    .messages = region_messages,
};
