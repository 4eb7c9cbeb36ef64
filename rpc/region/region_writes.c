/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/region/regions.h"

#include "core/base/memory.h"

enum { WRITES = 1024 };

struct region_writes {
    struct written {
        struct tenrec_route route;
        int64_t id;
        tenrec_peer from;
    } slot[WRITES];
};

/* The ids of a caller count its calls in their upper bits, and the slots of its table below. */
static struct written *writes_slot(struct region_writes *w, tenrec_peer from,
                                   const struct tenrec_msg *msg)
{
    const uint64_t id = (uint64_t)msg->id;

    return &w->slot[(id ^ id >> 20 ^ (uint64_t)from * 31) % WRITES];
}

static bool written_is(const struct written *s, tenrec_peer from, const struct tenrec_msg *msg)
{
    return s->route.generation == msg->route.generation && s->route.pipe == msg->route.pipe &&
           s->id == msg->id && s->from == from;
}

tenrec_status region_writes_note(struct region_table *t, tenrec_peer from,
                                 const struct tenrec_msg *msg, bool *ret_repeated,
                                 tenrec_error *err)
{
    struct written *s;
    tenrec_status st = TENREC_OK;

    *ret_repeated = false;
    if (msg->route.generation == 0) /* messages of a former connection may have the same id */
        return TENREC_OK;
    pthread_mutex_lock(&t->lock);
    if (!t->writes && !(t->writes = memory_new(1, sizeof *t->writes))) {
        st = memory_fail(err);
    } else {
        s = writes_slot(t->writes, from, msg);
        *ret_repeated = written_is(s, from, msg);
        t->n_repeated += *ret_repeated;
        *s = (struct written){ msg->route, msg->id, from };
    }
    pthread_mutex_unlock(&t->lock);
    return st;
}

bool region_writes_have(struct region_table *t, tenrec_peer from, const struct tenrec_msg *msg)
{
    bool has;

    pthread_mutex_lock(&t->lock);
    has = t->writes && written_is(writes_slot(t->writes, from, msg), from, msg);
    pthread_mutex_unlock(&t->lock);
    return has;
}
