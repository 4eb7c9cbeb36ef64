/* SPDX-License-Identifier: Apache-2.0 */
/* conflict.c - the members that have the id or the name of a worker that joins. */
#include "group/membership/membership_inside.h"

#include "core/base/log.h"

static const struct membership_view_entry *
other_with(const struct membership_view *v, tenrec_peer id, const char *name, bool *ret_by_name)
{
    const struct membership_view_entry *e = membership_view_by_id(v, id);

    *ret_by_name = !e;
    return e ? e : membership_view_by_name(v, name);
}

/* Determines our id and name in `v`. */
static tenrec_status conflict_identify(struct membership_list *r, const struct membership_view *v,
                                       tenrec_peer wished, const char *pattern, tenrec_error *err)
{
    tenrec_status st;

    r->id = wished >= 0 ? wished : membership_view_free_id(v);
    if (r->id < 0 || r->id >= RANKS_MAX)
        return tenrec_fail(err, TENREC_EGROUP, "group \"%s\" has %zu members, which is the most",
                           r->group, v->n);
    st = ranks_make_name(pattern, r->id, r->name, err);
    return st == TENREC_OK ? ranks_check_name("worker name", r->name, err) : st;
}

tenrec_status conflicts_remove(struct membership_list *r, struct membership_view *v,
                               tenrec_peer wished, const char *pattern, uint64_t deadline_ns,
                               struct conflict *ret, bool *ret_blocked, tenrec_error *err)
{
    const struct membership_view_entry *e;
    tenrec_status st;

    *ret_blocked = false;
    for (;;) {
        st = conflict_identify(r, v, wished, pattern, err);
        if (st != TENREC_OK || !(e = other_with(v, r->id, r->name, &ret->by_name)))
            return st;
        ret->id = e->id;
        snprintf(ret->name, sizeof ret->name, "%s", e->name);
        st = membership_list_records(r, e, 1, deadline_ns, &ret->record, err);
        if (st != TENREC_OK)
            return st;
        if (!member_was_here(&ret->record) || member_runs_here(&ret->record)) {
            *ret_blocked = true;
            return TENREC_OK;
        }
        log_line(TENREC_LOG_INFO, "group",
                 "worker \"%s\" (id %d) of group \"%s\" died: its process %lld does not run any "
                 "more",
                 e->name, (int)e->id, r->group, (long long)ret->record.pid);
        member_free(&ret->record);
        membership_view_remove(v, e->id, e->incarnation, true, r->id);
    }
}

tenrec_status conflict_fail(const struct membership_list *r, const struct conflict *c,
                            tenrec_error *err)
{
    char where[120] = "";

    if (c->record.pid > 0)
        snprintf(where, sizeof where, " (process %lld on %.64s)", (long long)c->record.pid,
                 c->record.host);
    if (c->by_name)
        return tenrec_fail(err, TENREC_EGROUP, "name \"%s\" is used by id %d of group \"%s\"%s",
                           r->name, (int)c->id, r->group, where);
    return tenrec_fail(err, TENREC_EGROUP,
                       "id %d of group \"%s\" is taken by worker \"%s\"%s, which has not left",
                       (int)c->id, r->group, c->name, where);
}
