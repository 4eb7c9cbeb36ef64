/* SPDX-License-Identifier: Apache-2.0 */
/* devices_agree.c - agreement of a group on devices and device maps. The ways are guarded by
 * devices.lock. */
#include "rpc/devices/devices.h"

#include <stdlib.h>
#include <string.h>

#include "core/backend/backend.h"
#include "core/base/fail.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/tensor/device.h"
#include "group/meeting/meeting.h"
#include "group/meeting/membership.h"
#include "rpc/call/calls.h"

/* A host without devices is no failure here: a use of a device fails later, with the reason. */
static tenrec_status ask_count(struct device_row *mine, struct chain *chain, tenrec_error *err)
{
    const struct tenrec_device_ops *ops;
    uint32_t n = 0;
    tenrec_error why;
    tenrec_status st = chain_devices(chain, &ops, &n, &why);

    if (st == TENREC_OK)
        st = stream_ops_set(ops, &why);
    if (st != TENREC_OK && st != TENREC_EUNSUPPORTED)
        return fail_with(err, &why);
    mine->count = st == TENREC_OK ? (int64_t)n : 0;
    return TENREC_OK;
}

tenrec_status devices_tell(struct devices *d, struct chain *chain, struct store_value *ret,
                           tenrec_error *err)
{
    tenrec_status st;

    *ret = (struct store_value){ 0 };
    if (!d || device_row_is_empty(&d->mine))
        return TENREC_OK;
    st = ask_count(&d->mine, chain, err);
    if (st != TENREC_OK)
        return st;
    device_record_pack(&d->mine, ret);
    return ret->data ? TENREC_OK
                     : tenrec_fail(err, TENREC_ENOMEM, "no memory for the worker's devices");
}

/* The devices of all members during the check. */
struct table {
    struct membership *group;
    struct device_row *row;
    size_t n, me;
};

static void table_free(struct table *t)
{
    for (size_t i = 0; t->row && i < t->n; i++)
        device_row_free(&t->row[i]);
    free(t->row);
}

static tenrec_status table_read(struct tenrec_worker *w, struct table *t, tenrec_error *err)
{
    const struct tenrec_member *member = t->group->member;
    tenrec_status st = TENREC_OK;

    t->n = membership_world(t->group);
    t->row = memory_new(t->n, sizeof *t->row);
    if (!t->row)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the devices of %zu workers", t->n);
    for (size_t i = 0; i < t->n && st == TENREC_OK; i++) {
        const struct member *m = &t->group->members->list[i];

        st = device_record_unpack(m->extra, m->extra_len, &t->row[i], err);
        if (st != TENREC_OK)
            tenrec_error_prefix(err, "worker '%s'", member[i].name);
        t->row[i].name = member[i].name;
        if (member[i].id == w->self.id)
            t->me = i;
    }
    return st;
}

/* Counts our devices if another member names one and they were not counted before. */
static tenrec_status table_count_own(struct tenrec_worker *w, struct table *t, tenrec_error *err)
{
    return device_table_wants_count(t->row, t->n, t->me) ? ask_count(&t->row[t->me], w->chain, err)
                                                         : TENREC_OK;
}

/* In a static group publishes the count, too; each member knows from the table which members
 * publish. */
static tenrec_status table_count(struct tenrec_worker *w, struct table *t, uint64_t deadline_ns,
                                 tenrec_error *err)
{
    int64_t count = DEVICE_COUNT_UNKNOWN;
    tenrec_status st;
    bool *wants = memory_new(t->n, sizeof *wants);

    if (!wants)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the devices of %zu workers", t->n);
    for (size_t i = 0; i < t->n; i++)
        wants[i] = device_table_wants_count(t->row, t->n, i);
    st = table_count_own(w, t, err);
    if (st == TENREC_OK && wants[t->me])
        st = membership_tell_number(t->group, "devices", t->row[t->me].count, deadline_ns, err);
    for (size_t i = 0; i < t->n && st == TENREC_OK; i++) {
        if (!wants[i] || i == t->me)
            continue;
        st = membership_hear_number(t->group, "devices", (tenrec_peer)i, deadline_ns, &count, err);
        if (st == TENREC_OK)
            t->row[i].count = count;
    }
    free(wants);
    return st;
}

/* ---- ways ------------------------------------------------------------------------------ */

/* Lock held, or the way is not shared yet. */
static void way_clear(struct device_way *way)
{
    device_map_free(&way->request);
    device_map_free(&way->answer);
}

static tenrec_status way_room(struct devices *d, tenrec_peer id, tenrec_error *err)
{
    struct device_way *grown;

    if ((size_t)id < d->n_ways)
        return TENREC_OK;
    grown = memory_resize(d->way, (size_t)id + 1, sizeof *grown);
    if (!grown)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for device maps");
    memset(grown + d->n_ways, 0, ((size_t)id + 1 - d->n_ways) * sizeof *grown);
    d->way = grown;
    d->n_ways = (size_t)id + 1;
    return TENREC_OK;
}

/* Sets the ways to and from worker `id`, from our map for it and its map for us. */
static tenrec_status way_set(struct devices *d, tenrec_peer id, const struct device_map *ours,
                             const struct device_map *theirs, tenrec_error *err)
{
    tenrec_status st = way_room(d, id, err);

    if (st != TENREC_OK)
        return st;
    way_clear(&d->way[id]);
    st = device_map_copy(ours, false, &d->way[id].request, err);
    if (st == TENREC_OK)
        st = device_map_copy(theirs, true, &d->way[id].answer, err);
    if (d->way[id].request.n > 0 || d->way[id].answer.n > 0)
        atomic_store(&d->maps, true);
    return st;
}

void devices_forget(struct devices *d)
{
    if (!d)
        return;
    for (size_t i = 0; i < d->n_ways; i++)
        way_clear(&d->way[i]);
    free(d->way);
    free(d->used);
    d->way = NULL;
    d->used = NULL;
    d->n_ways = 0;
    d->n_used = 0;
    atomic_store(&d->maps, false);
    d->mine.count = DEVICE_COUNT_UNKNOWN;
}

static tenrec_status devices_agree_use(struct tenrec_worker *w, struct table *t, bool dynamic,
                                       tenrec_error *err)
{
    const struct tenrec_member *member = t->group->member;
    struct devices *d = w->calls->devices;
    tenrec_status st = TENREC_OK;
    size_t n;

    for (size_t i = 0; i < t->n && st == TENREC_OK; i++)
        st = way_set(d, member[i].id, device_row_map(&t->row[t->me], member[i].name),
                     device_row_map(&t->row[i], w->self.name), err);
    if (st == TENREC_OK)
        st = device_table_list(t->row, t->n, t->me, &d->used, &n, err);
    if (st != TENREC_OK)
        return st;
    /* A worker without devices may send to devices of others. In a dynamic group a message of ours
     * may reach a member before our maps do. */
    if (n == 0 && !(dynamic && t->row[t->me].n_maps > 0))
        return TENREC_OK;
    d->n_used = n;
    return chain_use_devices(w->chain, d->used, (uint32_t)n, err);
}

tenrec_status devices_agree(struct tenrec_worker *w, struct membership *group, uint64_t deadline_ns,
                            tenrec_error *err)
{
    const bool dynamic = membership_list_of(group) != NULL;
    const int64_t count = w->calls->devices ? w->calls->devices->mine.count : DEVICE_COUNT_UNKNOWN;
    struct table t = { .group = group };
    tenrec_status st;

    devices_forget(w->calls->devices);
    if (!dynamic && !group->members->list)
        return TENREC_OK; /* no member has devices; mostly so */
    if (!w->calls->devices && !(w->calls->devices = devices_make()))
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the worker's devices");
    st = table_read(w, &t, err);
    if (st == TENREC_OK)
        st = dynamic ? table_count_own(w, &t, err) : table_count(w, &t, deadline_ns, err);
    if (st == TENREC_OK)
        st = device_table_check(t.row, t.n, !dynamic, err);
    if (st == TENREC_OK)
        st = devices_agree_use(w, &t, dynamic, err);
    w->calls->devices->mine.count = count;
    table_free(&t);
    return st;
}

/* ---- members that join and leave -------------------------------------------------------- */

/* Uses the devices that a new member sends to, too, unless the program set them. Only the group's
 * thread changes `used`, so the driver is called without the lock. */
static tenrec_status use_more(struct tenrec_worker *w, const struct device_map *theirs,
                              tenrec_error *err)
{
    struct devices *d = w->calls->devices;
    struct tenrec_device *list;
    size_t n;
    struct device_row now = { .name = w->self.name, .count = d->mine.count };
    tenrec_status st;

    if (!theirs || theirs->n == 0 || d->mine.n_devices > 0)
        return TENREC_OK;
    if (d->mine.count == DEVICE_COUNT_UNKNOWN && (st = ask_count(&d->mine, w->chain, err)))
        return st;
    /* As if our own maps named them, too. */
    for (size_t i = 0; i < d->n_used; i++) {
        const struct tenrec_device_pair pair = { d->used[i], d->used[i] };
        if ((st = device_row_add(&now, w->self.name, &pair, 1, err)))
            goto out;
    }
    for (size_t i = 0; i < theirs->n; i++) {
        const struct tenrec_device_pair pair = { theirs->pair[i].to, theirs->pair[i].to };
        if (theirs->pair[i].to.kind != TENREC_CPU && theirs->pair[i].to.index >= d->mine.count) {
            st = tenrec_fail(err, TENREC_EGROUP, "its device map names cuda:%d: this host has %lld",
                             theirs->pair[i].to.index, (long long)d->mine.count);
            goto out;
        }
        if ((st = device_row_add(&now, w->self.name, &pair, 1, err)))
            goto out;
    }
    st = device_table_list(&now, 1, 0, &list, &n, err);
    if (st != TENREC_OK)
        goto out;
    st = chain_use_devices(w->chain, list, (uint32_t)n, err);
    if (st == TENREC_OK) {
        struct tenrec_device *former = d->used;

        pthread_rwlock_wrlock(&d->lock);
        d->used = list;
        d->n_used = n;
        pthread_rwlock_unlock(&d->lock);
        list = former;
    }
    free(list);
out:
    device_row_free(&now);
    return st;
}

void devices_joined(struct tenrec_worker *w, tenrec_peer id, const char *name, const void *extra,
                    size_t len)
{
    struct devices *d = w->calls->devices;
    struct device_row row;
    const struct device_map *theirs;
    tenrec_error err;
    tenrec_status st;

    if (!d)
        return;
    st = device_record_unpack(extra, len, &row, &err);
    if (st == TENREC_OK) {
        theirs = device_row_map(&row, w->self.name);
        st = use_more(w, theirs, &err);
        pthread_rwlock_wrlock(&d->lock);
        if (st == TENREC_OK)
            st = way_set(d, id, device_row_map(&d->mine, name), theirs, &err);
        pthread_rwlock_unlock(&d->lock);
        device_row_free(&row);
    }
    if (st != TENREC_OK)
        log_line(TENREC_LOG_WARN, w->self.name,
                 "tensors on devices cannot be exchanged with '%s': %s", name, err.text);
}

void devices_left(struct tenrec_worker *w, tenrec_peer id)
{
    struct devices *d = w->calls->devices;

    if (!d)
        return;
    pthread_rwlock_wrlock(&d->lock);
    if ((size_t)id < d->n_ways)
        way_clear(&d->way[id]);
    pthread_rwlock_unlock(&d->lock);
}
