/* SPDX-License-Identifier: Apache-2.0 */
#include "group/membership/membership_inside.h"

#include "group/membership/group_directory.h"
#include "group/membership/torch_keys.h"

#include <stdlib.h>
#include <string.h>

tenrec_status membership_list_list(struct tenrec_store *store, uint64_t deadline_ns,
                                   struct membership_view *ret, struct store_value *ret_raw,
                                   tenrec_error *err)
{
    struct store_value raw;
    tenrec_status st = store_read(store, "view", deadline_ns, &raw, err);

    *ret = (struct membership_view){ .version = 0 };
    if (st == TENREC_OK && raw.data)
        st = membership_view_unpack(&raw, ret, err);
    if (st == TENREC_OK && ret_raw)
        *ret_raw = raw;
    else
        free(raw.data);
    return st;
}

tenrec_status membership_list_replace(struct membership_list *r, const struct store_value *raw,
                                      const struct membership_view *v, uint64_t deadline_ns,
                                      bool *ret_done, tenrec_error *err)
{
    struct store_value mine = { 0 };
    struct store_value now = { 0 };
    tenrec_status st;

    membership_view_pack(v, &mine);
    if (!mine.data)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a list of %zu workers", v->n);
    st = store_compare_set(r->store, "view", raw, &mine, deadline_ns, &now, err);
    *ret_done = st == TENREC_OK && now.len == mine.len && memcmp(now.data, mine.data, now.len) == 0;
    free(now.data);
    free(mine.data);
    return st;
}

tenrec_status membership_list_read(struct membership_list *r, uint64_t deadline_ns,
                                   struct membership_view *ret, tenrec_error *err)
{
    tenrec_status st = membership_list_list(r->store, deadline_ns, ret, NULL, err);

    if (st == TENREC_OK && ret->version == 0)
        st = tenrec_fail(err, TENREC_EGROUP, "%s has no list of the members of group \"%s\"",
                         tenrec_store_name(r->store), r->group);
    return st;
}

tenrec_status membership_list_open(struct tenrec_store *s, const char *group, const char *run,
                                   uint64_t lease_ms, struct membership_list *ret,
                                   tenrec_error *err)
{
    struct membership_list r = { .whole = s, .id = -1 };
    tenrec_status st = group_directory_part(s, group, run, &r.store, err);

    if (st != TENREC_OK)
        return st;
    snprintf(r.group, sizeof r.group, "%s", group);
    snprintf(r.run, sizeof r.run, "%s", run);
    st = torch_keys_open(s, r.store, group, run, &r.torch, err);
    r.lock.lease = (struct lease){ .store = r.store, .key = "lock", .lease_ms = lease_ms };
    r.lock.torch = r.torch;
    if (st == TENREC_OK)
        *ret = r;
    else
        membership_list_close(&r);
    return st;
}

void membership_list_close(struct membership_list *r)
{
    requests_forget(&r->requests);
    tenrec_store_close(r->torch);
    tenrec_store_close(r->store);
    *r = (struct membership_list){ .id = -1 };
}

void membership_list_end_request(struct membership_list *r, uint64_t deadline_ns)
{
    group_lock_release(&r->lock, deadline_ns);
    lease_drop_ticket(&r->lock.lease, deadline_ns);
    requests_forget(&r->requests);
}

tenrec_status membership_list_end_change(struct membership_list *r, tenrec_status st, bool done,
                                         struct membership_view *v, uint64_t deadline_ns,
                                         struct membership_view *ret, tenrec_error *err)
{
    membership_list_end_request(r, deadline_ns);
    if (st == TENREC_OK && !done)
        st = tenrec_fail(err, TENREC_EAGAIN, "the members of group \"%s\" change too often",
                         r->group);
    if (st == TENREC_OK)
        *ret = *v;
    else
        membership_view_finish(v);
    return st;
}
