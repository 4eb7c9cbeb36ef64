#include "rpc/peers.h"

#include "base/hash.h"
#include "base/memory.h"
#include "base/nearest.h"

#include <stdlib.h>

struct peer {
    char *name; /* owns */
    tenrec_peer id;
    UT_hash_handle hh;
};

tenrec_status peers_fill(struct peers *p, const char *const *name, size_t n, tenrec_peer me,
                         tenrec_error *err)
{
    *p = (struct peers){ .me = me, .peer = memory_new(n, sizeof(struct peer)) };
    if (!p->peer)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for %zu workers", n);
    for (p->n = 0; p->n < n; p->n++) {
        struct peer *one = &p->peer[p->n];
        one->id = (tenrec_peer)p->n;
        one->name = memory_text(name[p->n]);
        if (one->name)
            HASH_ADD_KEYPTR(hh, p->by_name, one->name, strlen(one->name), one);
        if (!hash_has(one)) {
            free(one->name);
            peers_finish(p);
            return tenrec_fail(err, TENREC_ENOMEM, "no memory for %zu workers", n);
        }
    }
    return TENREC_OK;
}

void peers_finish(struct peers *p)
{
    HASH_CLEAR(hh, p->by_name);
    for (size_t i = 0; i < p->n; i++)
        free(p->peer[i].name);
    free(p->peer);
    *p = (struct peers){ .n = 0 };
}

tenrec_status peers_find(const struct peers *p, const char *name, tenrec_peer *ret,
                         tenrec_error *err)
{
    struct nearest near;
    struct peer *one;

    HASH_FIND_STR(p->by_name, name, one);
    if (one) {
        *ret = one->id;
        return TENREC_OK;
    }
    nearest_init(&near, name);
    for (size_t i = 0; i < p->n; i++)
        nearest_try(&near, p->peer[i].name);
    return tenrec_fail(err, TENREC_EPEER_UNKNOWN, "no worker is called '%s'%s", name,
                       nearest_hint(&near));
}

tenrec_status peers_find_again(struct peers *p, const char *name, tenrec_peer *ret,
                               tenrec_error *err)
{
    const struct peer *last = atomic_load_explicit(&p->last, memory_order_acquire);
    tenrec_status st;

    if (last && strcmp(last->name, name) == 0) {
        *ret = last->id;
        return TENREC_OK;
    }
    st = peers_find(p, name, ret, err);
    if (st == TENREC_OK)
        atomic_store_explicit(&p->last, &p->peer[*ret], memory_order_release);
    return st;
}

const char *peers_name(const struct peers *p, tenrec_peer id)
{
    return id >= 0 && (size_t)id < p->n ? p->peer[id].name : "";
}

void peers_blame(const struct peers *p, tenrec_peer id, tenrec_error *err)
{
    err->worker = id;
    snprintf(err->worker_name, sizeof err->worker_name, "%s", peers_name(p, id));
}
