/* SPDX-License-Identifier: Apache-2.0 */
/* group_kind.c - static or dynamic: the first worker decides. */
#include "group/membership/group_directory.h"

#include "group/membership/generation.h"
#include "group/membership/torch_keys.h"

#include <stdlib.h>
#include <string.h>

/* Torch's key and values, so that its workers and ours do not mix either. */
#define STATIC "true"
#define DYNAMIC "false"

enum { CLAIM_MS = 5000 /* lease of a static worker, which holds the lock only briefly */ };

static tenrec_status fail_mixed(const char *group, const char *reason, tenrec_error *err)
{
    return tenrec_fail(err, TENREC_EGROUP,
                       "group \"%s\" mixes static and dynamic workers: %s; give all of them a "
                       "world size, or none",
                       group, reason);
}

/* Returns true if every rank of the latest life of the static group has left it. */
static bool static_is_over(struct membership_list *r, uint64_t deadline_ns)
{
    struct group_directory_entry e;

    if (group_directory_find(r->whole, r->group, deadline_ns, &e, NULL) != TENREC_OK ||
        e.world == 0)
        return false;
    for (int32_t i = 0; i < e.world; i++)
        if (!generation_rank_left(r->store, i, e.incarnation, deadline_ns))
            return false;
    return true;
}

static tenrec_status set_kind(struct membership_list *r, const char *from, const char *to,
                              uint64_t deadline_ns, bool *ret_done, tenrec_error *err)
{
    char *now;
    tenrec_status st = store_swap_text(r->torch, TORCH_KIND, from, to, deadline_ns, &now, err);

    *ret_done = st == TENREC_OK && strcmp(now, to) == 0;
    free(now);
    return st;
}

/* Members of ours are in the view before they are in torch's list, and leave the view last: an
 * entry of the list that the view lacks is torch's only if the view did not change meanwhile. */
tenrec_status group_kind_check_torch(struct membership_list *r, uint64_t deadline_ns, size_t *ret_n,
                                     tenrec_error *err)
{
    struct membership_view v = { .version = 0 };
    struct torch_entry other;
    bool found = false;
    tenrec_status st = membership_list_list(r->store, deadline_ns, &v, NULL, err);

    while (st == TENREC_OK && v.n == 0) {
        const int64_t version = v.version;

        st = torch_keys_find_other(r->torch, &v, deadline_ns, &other, &found, err);
        if (st != TENREC_OK || !found)
            break;
        membership_view_finish(&v);
        st = membership_list_list(r->store, deadline_ns, &v, NULL, err);
        if (st != TENREC_OK || v.version == version)
            break;
        found = false;
    }
    if (ret_n)
        *ret_n = v.n;
    membership_view_finish(&v);
    if (st != TENREC_OK || !found)
        return st;
    return tenrec_fail(err, TENREC_EGROUP,
                       "group \"%s\" in this store is one of torch.distributed.rpc's own workers "
                       "(\"%s\", id %d): set worker.group to another name, or use another store; "
                       "when none of them runs any more remove the key names/_ALL_WORKER_INFOS",
                       r->group, other.name, (int)other.id);
}

tenrec_status group_kind_claim_dynamic(struct membership_list *r, uint64_t deadline_ns,
                                       tenrec_error *err)
{
    bool done;
    tenrec_status st = set_kind(r, "", DYNAMIC, deadline_ns, &done, err);

    if (st == TENREC_OK && !done && static_is_over(r, deadline_ns))
        st = set_kind(r, STATIC, DYNAMIC, deadline_ns, &done, err);
    if (st == TENREC_OK && !done)
        st = fail_mixed(r->group, "this worker has no world size, others have one", err);
    return st;
}

/* Ends a dynamic group without members. The caller holds the lock, so that no worker is joining. */
static tenrec_status end_dynamic(struct membership_list *r, uint64_t deadline_ns, bool *ret_done,
                                 tenrec_error *err)
{
    size_t n;
    tenrec_status st = group_kind_check_torch(r, deadline_ns, &n, err);

    return st == TENREC_OK && n == 0 ? set_kind(r, DYNAMIC, STATIC, deadline_ns, ret_done, err)
                                     : st;
}

static tenrec_status claim_static(struct membership_list *r, uint64_t deadline_ns,
                                  tenrec_error *err)
{
    bool done;
    tenrec_status st = group_kind_check_torch(r, deadline_ns, NULL, err);

    if (st == TENREC_OK)
        st = set_kind(r, "", STATIC, deadline_ns, &done, err);
    if (st != TENREC_OK || done)
        return st;
    st = group_lock_acquire(&r->lock, "static", deadline_ns, err);
    if (st == TENREC_OK)
        st = end_dynamic(r, deadline_ns, &done, err);
    group_lock_release(&r->lock, deadline_ns);
    if (st == TENREC_OK && !done)
        st = fail_mixed(r->group, "this worker has a world size, others have none", err);
    return st;
}

tenrec_status group_kind_claim_static(struct tenrec_store *s, const char *group, const char *run,
                                      uint64_t deadline_ns, tenrec_error *err)
{
    struct membership_list r;
    tenrec_status st = membership_list_open(s, group, run, CLAIM_MS, &r, err);

    if (st != TENREC_OK)
        return st;
    st = claim_static(&r, deadline_ns, err);
    membership_list_close(&r);
    return st;
}
