/* SPDX-License-Identifier: Apache-2.0 */
#include "group/membership/membership.h"

#include "core/base/memory.h"
#include "group/store/bytes.h"

#include <stdlib.h>
#include <string.h>

/* Magic, version, members, the last former members, those before them; all numbers little-endian.
 * Later versions append fields, which this version ignores; earlier ones end before the second list
 * of former members. */
#define MAGIC 0x31565254u /* "TRV1" */
#define GONE_FIRST_MAX 64 /* in the first list */
#define ENTRY_MIN (3 * sizeof(uint64_t))
#define GONE_SIZE (3 * sizeof(uint64_t))

static void name_free(const char *name)
{
    free((void *)(uintptr_t)name);
}

void membership_view_finish(struct membership_view *v)
{
    for (size_t i = 0; i < v->n; i++)
        name_free(v->entry[i].name);
    free(v->entry);
    free(v->gone);
    *v = (struct membership_view){ .version = 0 };
}

tenrec_status membership_view_copy(const struct membership_view *v, struct membership_view *ret,
                                   tenrec_error *err)
{
    struct membership_view copy = *v;

    copy.n = 0;
    copy.room = v->n ? v->n : 1;
    copy.room_gone = v->n_gone ? v->n_gone : 1;
    copy.entry = memory_new(copy.room, sizeof *copy.entry);
    copy.gone = memory_new(copy.room_gone, sizeof *copy.gone);
    for (size_t i = 0; i < v->n && copy.entry; i++) {
        copy.entry[i] = v->entry[i];
        if (!(copy.entry[i].name = memory_text(v->entry[i].name)))
            break;
        copy.n++;
    }
    if (copy.n < v->n || !copy.entry || !copy.gone) {
        membership_view_finish(&copy);
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for %zu workers", v->n);
    }
    if (v->n_gone)
        memcpy(copy.gone, v->gone, v->n_gone * sizeof *copy.gone);
    *ret = copy;
    return TENREC_OK;
}

size_t membership_view_index(const struct membership_view *v, tenrec_peer id)
{
    size_t low = 0, high = v->n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (v->entry[mid].id < id)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

const struct membership_view_entry *membership_view_by_id(const struct membership_view *v,
                                                          tenrec_peer id)
{
    size_t at = membership_view_index(v, id);

    return at < v->n && v->entry[at].id == id ? &v->entry[at] : NULL;
}

const struct membership_view_entry *membership_view_by_name(const struct membership_view *v,
                                                            const char *name)
{
    for (size_t i = 0; i < v->n; i++)
        if (strcmp(v->entry[i].name, name) == 0)
            return &v->entry[i];
    return NULL;
}

const struct membership_view_entry *membership_view_find(const struct membership_view *v,
                                                         tenrec_peer id, int64_t incarnation)
{
    const struct membership_view_entry *e = membership_view_by_id(v, id);

    return e && e->incarnation == incarnation ? e : NULL;
}

const struct membership_view_gone *membership_view_find_gone(const struct membership_view *v,
                                                             int64_t incarnation)
{
    for (size_t i = v->n_gone; i-- > 0;)
        if (v->gone[i].incarnation == incarnation)
            return &v->gone[i];
    return NULL;
}

/* The finaliser of splitmix64. */
uint64_t membership_view_sum_of(tenrec_peer id, int64_t incarnation)
{
    uint64_t x = (uint64_t)incarnation * RANKS_MAX + (uint64_t)id;

    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

tenrec_peer membership_view_free_id(const struct membership_view *v)
{
    size_t id = 0;

    while (id < v->n && (size_t)v->entry[id].id == id)
        id++;
    return id < RANKS_MAX ? (tenrec_peer)id : -1;
}

tenrec_status membership_view_add(struct membership_view *v, const struct membership_view_entry *e,
                                  tenrec_error *err)
{
    struct membership_view_entry *more = memory_grow(v->entry, v->n, &v->room, sizeof *more);
    const char *name = NULL;
    size_t at;

    if (more) {
        v->entry = more;
        name = memory_text(e->name);
    }
    if (!name)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for %zu workers", v->n + 1);
    at = membership_view_index(v, e->id);
    memmove(v->entry + at + 1, v->entry + at, (v->n - at) * sizeof *e);
    v->entry[at] = *e;
    v->entry[at].name = name;
    v->n++;
    v->sum += membership_view_sum_of(e->id, e->incarnation);
    return TENREC_OK;
}

/* Out of memory it is forgotten how the member went. */
static void view_note_gone(struct membership_view *v, const struct membership_view_gone *g)
{
    struct membership_view_gone *more;
    size_t most;

    if (v->removed_of != v->version)
        v->n_removed = 0;
    v->removed_of = v->version;
    most = v->n + ++v->n_removed;
    if (most < VIEW_GONE_MIN)
        most = VIEW_GONE_MIN;
    if (v->n_gone >= most) {
        const size_t kept = most - 1;

        memmove(v->gone, v->gone + (v->n_gone - kept), kept * sizeof *g);
        v->n_gone = kept;
    }
    more = memory_grow(v->gone, v->n_gone, &v->room_gone, sizeof *more);
    if (!more)
        return;
    v->gone = more;
    v->gone[v->n_gone++] = *g;
}

bool membership_view_remove(struct membership_view *v, tenrec_peer id, int64_t incarnation,
                            bool died, tenrec_peer by)
{
    size_t at = membership_view_index(v, id);

    if (!membership_view_find(v, id, incarnation))
        return false;
    v->n--;
    v->sum -= membership_view_sum_of(id, incarnation);
    name_free(v->entry[at].name);
    memmove(v->entry + at, v->entry + at + 1, (v->n - at) * sizeof v->entry[0]);
    view_note_gone(v, &(struct membership_view_gone){ incarnation, died, by });
    return true;
}

/* ---- bytes ------------------------------------------------------------------ */

static void add_gone(struct bytes *b, const struct membership_view_gone *g, size_t from, size_t end)
{
    for (size_t i = from; i < end; i++) {
        bytes_add_u64(b, (uint64_t)g[i].incarnation);
        bytes_add_u64(b, g[i].died);
        bytes_add_u64(b, (uint64_t)g[i].by);
    }
}

void membership_view_pack(const struct membership_view *v, struct store_value *ret)
{
    const size_t first = v->n_gone < GONE_FIRST_MAX ? v->n_gone : GONE_FIRST_MAX;
    struct bytes b = { 0 };

    bytes_add_u32(&b, MAGIC);
    bytes_add_u64(&b, (uint64_t)v->version);
    bytes_add_u64(&b, v->n);
    bytes_add_u64(&b, first);
    for (size_t i = 0; i < v->n; i++) {
        bytes_add_u64(&b, (uint64_t)v->entry[i].id);
        bytes_add_u64(&b, (uint64_t)v->entry[i].incarnation);
        bytes_add_text(&b, v->entry[i].name);
    }
    add_gone(&b, v->gone, v->n_gone - first, v->n_gone);
    bytes_add_u64(&b, v->n_gone - first);
    add_gone(&b, v->gone, 0, v->n_gone - first);
    if (b.failed)
        bytes_free(&b);
    ret->data = b.data;
    ret->len = b.len;
}

/* Ids must grow, so no two are equal. */
static tenrec_status read_entry(struct bytes_reader *r, struct membership_view *v,
                                tenrec_error *err)
{
    struct membership_view_entry *e = &v->entry[v->n];
    uint64_t id = bytes_read_u64(r);
    char name[TENREC_NAME_MAX + 1];

    e->incarnation = (int64_t)bytes_read_u64(r);
    bytes_read_text(r, name, sizeof name);
    if (r->bad || ranks_check_name("worker name", name, NULL) != TENREC_OK || id >= RANKS_MAX ||
        e->incarnation < 1 || (v->n > 0 && v->entry[v->n - 1].id >= (tenrec_peer)id)) {
        r->bad = true;
        return TENREC_OK;
    }
    e->id = (tenrec_peer)id;
    v->sum += membership_view_sum_of(e->id, e->incarnation);
    if (!(e->name = memory_text(name)))
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for worker \"%s\"", name);
    v->n++;
    return TENREC_OK;
}

static void read_gone(struct bytes_reader *r, struct membership_view_gone *g, size_t n)
{
    for (size_t i = 0; i < n && !r->bad; i++) {
        g[i].incarnation = (int64_t)bytes_read_u64(r);
        g[i].died = bytes_read_u64(r) != 0;
        g[i].by = (tenrec_peer)(int64_t)bytes_read_u64(r);
    }
}

/* Reads both lists of former members: the first, of `first`, has the later ones. */
static tenrec_status read_all_gone(struct bytes_reader *r, size_t first, struct membership_view *v,
                                   tenrec_error *err)
{
    const size_t bytes = first * GONE_SIZE;
    struct bytes_reader later = { .data = bytes_read(r, bytes), .len = bytes };
    const size_t n = r->at < r->len ? bytes_read_count(r, RANKS_MAX, GONE_SIZE) : 0;

    if (r->bad)
        return TENREC_OK;
    v->room_gone = n + first + 1;
    if (!(v->gone = memory_new(v->room_gone, sizeof *v->gone)))
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for %zu former workers", n + first);
    read_gone(r, v->gone, n);
    read_gone(&later, v->gone + n, first);
    v->n_gone = n + first;
    return TENREC_OK;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Names identify members, so no two may be equal either. */
static tenrec_status check_names(const struct membership_view *v, bool *ret_bad, tenrec_error *err)
{
    const char **name = memory_new(v->n ? v->n : 1, sizeof *name);

    if (!name)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for %zu workers", v->n);
    for (size_t i = 0; i < v->n; i++)
        name[i] = v->entry[i].name;
    qsort(name, v->n, sizeof *name, compare_names);
    for (size_t i = 1; i < v->n; i++)
        *ret_bad = *ret_bad || strcmp(name[i - 1], name[i]) == 0;
    free(name);
    return TENREC_OK;
}

tenrec_status membership_view_unpack(const struct store_value *value, struct membership_view *ret,
                                     tenrec_error *err)
{
    struct bytes_reader r = { .data = value->data, .len = value->len };
    struct membership_view v = { .version = 0 };
    size_t n, n_gone;
    tenrec_status st = TENREC_OK;

    if (bytes_read_u32(&r) != MAGIC)
        return tenrec_fail(err, TENREC_EPROTOCOL, "not a list of a group's members");
    v.version = (int64_t)bytes_read_u64(&r);
    n = bytes_read_count(&r, RANKS_MAX, ENTRY_MIN);
    n_gone = bytes_read_count(&r, GONE_FIRST_MAX, GONE_SIZE);
    if (r.bad || v.version < 1 || v.version == INT64_MAX)
        return tenrec_fail(err, TENREC_EPROTOCOL, "malformed list of a group's members");
    v.room = n ? n : 1;
    v.entry = memory_new(v.room, sizeof *v.entry);
    if (!v.entry)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for %zu workers", n);
    for (size_t i = 0; i < n && st == TENREC_OK && !r.bad; i++)
        st = read_entry(&r, &v, err);
    if (st == TENREC_OK)
        st = read_all_gone(&r, n_gone, &v, err);
    if (st == TENREC_OK && !r.bad)
        st = check_names(&v, &r.bad, err);
    if (st == TENREC_OK && r.bad)
        st = tenrec_fail(err, TENREC_EPROTOCOL, "malformed list of a group's members");
    if (st == TENREC_OK)
        *ret = v;
    else
        membership_view_finish(&v);
    return st;
}
