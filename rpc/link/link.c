/* SPDX-License-Identifier: Apache-2.0 */
/* link.c - what the program does with links. */
#include "rpc/link/links.h"

#include "core/backend/backend.h"
#include "core/base/memory.h"
#include "group/meeting/membership.h"
#include "rpc/worker/worker.h"
#include "security/proof/security.h"

/* The worker is entered. */
static tenrec_status link_check_worker(const struct tenrec_worker *w, tenrec_error *err)
{
    const struct chain *c = w->chain;

    if (!membership_is_alone(group_of(w)->membership))
        return tenrec_fail(err, TENREC_EUNSUPPORTED,
                           "links are for a worker that is alone in its group: set "
                           "worker.world_size to 1 for '%s', or let both join one group",
                           w->self.name);
    if (chain_links(c))
        return TENREC_OK;
    return tenrec_fail(err, TENREC_EUNSUPPORTED,
                       "backend '%s' links no workers: use another, or a group",
                       chain_name(c, chain_depth(c) - 1));
}

static tenrec_status link_find_secret(const struct tenrec_worker *w, struct secret **ret,
                                      tenrec_error *err)
{
    const struct security *s = worker_security(w);

    if (s->mode == SECURITY_SECRET) {
        *ret = secret_share(s->secret);
        return TENREC_OK;
    }
    return tenrec_fail(err, TENREC_EUNSUPPORTED,
                       "a record carries the secret in security mode secret, and the mode is %s: "
                       "leave TENREC_LINK_WITH_SECRET out",
                       security_mode_name(s->mode));
}

tenrec_status link_own_record(struct tenrec_worker *w, bool with_secret, struct link_record *ret,
                              tenrec_error *err)
{
    const struct membership *m = group_of(w)->membership;
    const struct tenrec_plugin *wire = chain_plugin(w->chain, chain_depth(w->chain) - 1);
    struct link_record r = { .member = { .world = 1,
                                         .incarnation = (int64_t)membership_incarnation(m),
                                         .token = membership_token(m),
                                         .name = w->self.name,
                                         .address = chain_address(w->chain),
                                         .backend = wire->name } };
    tenrec_status st = TENREC_OK;

    if (with_secret)
        st = link_find_secret(w, &r.secret, err);
    if (st == TENREC_OK)
        *ret = r;
    else
        link_record_free(&r);
    return st;
}

tenrec_status tenrec_link_bind(struct tenrec_worker *w, uint32_t flags, void *ret, size_t *ret_len,
                               tenrec_error *err)
{
    struct link_record own;
    tenrec_status st;

    *ret_len = 0;
    if (flags & ~(uint32_t)TENREC_LINK_WITH_SECRET)
        return tenrec_fail(err, TENREC_EINVAL, "flags 0x%x: expected TENREC_LINK_WITH_SECRET or 0",
                           flags);
    st = worker_enter(w, err);
    if (st != TENREC_OK)
        return st;
    st = link_check_worker(w, err);
    if (st == TENREC_OK)
        st = link_own_record(w, flags & TENREC_LINK_WITH_SECRET, &own, err);
    if (st == TENREC_OK) {
        st = link_record_write(&own, ret, ret_len, err);
        link_record_free(&own);
    }
    worker_leave(w);
    return st;
}

static tenrec_status link_check_record(const struct tenrec_worker *w, const struct link_record *r,
                                       tenrec_error *err)
{
    const char *wire = chain_plugin(w->chain, chain_depth(w->chain) - 1)->name;

    if (r->member.token == membership_token(group_of(w)->membership))
        return tenrec_fail(err, TENREC_EINVAL,
                           "the record is of this worker itself ('%s'): pass that of the peer",
                           w->self.name);
    if (r->member.backend && *r->member.backend && strcmp(r->member.backend, wire) != 0)
        return tenrec_fail(err, TENREC_EGROUP,
                           "worker '%s' uses the backend '%s', and this one '%s': choose one for "
                           "both",
                           r->member.name, r->member.backend, wire);
    return TENREC_OK;
}

/* The worker is entered. Takes from `r` what it uses. */
static tenrec_status link_connect(struct tenrec_worker *w, struct link_record *r,
                                  struct tenrec_link **ret, tenrec_error *err)
{
    tenrec_status st = link_check_record(w, r, err);
    bool first;

    if (st == TENREC_OK)
        st = link_add(w, r, true, ret, &first, err);
    if (st == TENREC_OK && first)
        link_announce(w, *ret);
    return st;
}

tenrec_status tenrec_link_connect(struct tenrec_worker *w, const void *record, size_t len,
                                  struct tenrec_link **ret, tenrec_error *err)
{
    struct link_record r;
    tenrec_status st;

    *ret = NULL;
    st = link_record_read(record, len, &r, err);
    if (st != TENREC_OK)
        return st;
    st = worker_enter(w, err);
    if (st == TENREC_OK) {
        st = link_check_worker(w, err);
        if (st == TENREC_OK)
            st = link_connect(w, &r, ret, err);
        worker_leave(w);
    }
    link_record_free(&r);
    return st;
}
