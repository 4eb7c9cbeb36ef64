/* SPDX-License-Identifier: Apache-2.0 */
/* membership_reserve.c - a worker gets its id, and so its name. */
#include "group/membership/membership_inside.h"

#include "core/base/clock.h"
#include "group/membership/group_directory.h"

#include <stdlib.h>

enum { POLL_US = 100000 /* between two polls for the holder of our id */ };

/* The caller holds the lock. */
static tenrec_status try_reserve(struct membership_list *r, tenrec_peer wished, const char *pattern,
                                 uint64_t deadline_ns, struct conflict *ret, bool *ret_blocked,
                                 tenrec_error *err)
{
    struct membership_view v = { .version = 0 };
    tenrec_status st = group_kind_check_torch(r, deadline_ns, NULL, err);

    if (st == TENREC_OK)
        st = group_kind_claim_dynamic(r, deadline_ns, err);
    if (st == TENREC_OK)
        st = membership_list_list(r->store, deadline_ns, &v, NULL, err);
    if (st == TENREC_OK)
        st = conflicts_remove(r, &v, wished, pattern, deadline_ns, ret, ret_blocked, err);
    if (st == TENREC_OK && !*ret_blocked)
        st = store_add(r->store, "incarnations", 1, deadline_ns, &r->incarnation, err);
    membership_view_finish(&v);
    return st;
}

/* Asks a holder of the lock for an id, or acquires the lock. */
static tenrec_status ask_to_join(struct membership_list *r, tenrec_peer wished, const char *pattern,
                                 uint64_t deadline_ns, tenrec_error *err)
{
    struct request q = { .kind = REQUEST_JOIN, .id = wished };
    struct member me = { .rank = -1 };
    struct lease *l = &r->lock.lease;
    char holder[64];
    tenrec_status st;

    snprintf(holder, sizeof holder, "joiner-%d", (int)wished);
    snprintf(q.name, sizeof q.name, "%s", pattern);
    member_describe_process(&me, &q.place);
    q.pid = me.pid;
    q.start = me.start;
    request_pack(&q, &l->wants);
    if (!l->wants.data)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a request to join");
    st = group_lock_acquire(&r->lock, holder, deadline_ns, err);
    free(l->wants.data);
    l->wants = (struct store_value){ .data = NULL };
    if (st != TENREC_OK || l->held)
        return st;
    l->waits = LEASE_AGAIN;
    st = request_read_answer(l->answer, wished, &r->id, &r->incarnation, err);
    return st == TENREC_OK ? ranks_make_name(pattern, r->id, r->name, err) : st;
}

tenrec_status membership_list_reserve_others(struct membership_list *r, uint64_t deadline_ns,
                                             bool *ret_some, tenrec_error *err)
{
    tenrec_status st = requests_load(r, deadline_ns, err);

    return st == TENREC_OK ? requests_reserve(r, deadline_ns, ret_some, err) : st;
}

tenrec_status membership_list_reserve(struct membership_list *r, tenrec_peer wished,
                                      const char *pattern, uint64_t deadline_ns, tenrec_error *err)
{
    struct backoff pause = { POLL_US, POLL_US };
    struct conflict c;
    bool blocked = false, here, some;
    tenrec_status st;

    /* Also before the lock, which is torch's, too: a refused worker writes nothing. */
    if ((st = group_kind_check_torch(r, deadline_ns, NULL, err)) != TENREC_OK ||
        (st = member_draw_token(&r->token, err)) != TENREC_OK)
        return st;
    for (;;) {
        c = (struct conflict){ .by_name = false };
        st = ask_to_join(r, wished, pattern, deadline_ns, err);
        if (st == TENREC_OK && !r->lock.lease.held)
            return st; /* the holder waits for our record */
        if (st == TENREC_OK)
            st = try_reserve(r, wished, pattern, deadline_ns, &c, &blocked, err);
        if (st == TENREC_OK && !blocked)
            st = membership_list_reserve_others(r, deadline_ns, &some, err);
        if (st == TENREC_OK && !blocked)
            return st; /* the lock stays ours */
        membership_list_end_request(r, deadline_ns);
        here = blocked && member_was_here(&c.record); /* and still runs */
        if (st == TENREC_OK && (here || clock_passed(deadline_ns)))
            st = conflict_fail(r, &c, err);
        member_free(&c.record);
        if (st != TENREC_OK) {
            r->id = -1;
            return st;
        }
        /* On another host: if that member is dead, other members will remove it. */
        backoff_take(&pause, deadline_ns);
    }
}
