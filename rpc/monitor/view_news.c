/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/monitor/view_news.h"

#include "core/base/memory.h"

#include <stdlib.h>
#include <string.h>

enum {
    LOG_MAX = 4096,
    CHANGES_MAX = LOG_MAX,
    CHANGE_SIZE = 24, /* bytes, at least */
    RECORD_MAX = MEMBER_MAX_ADDRESS + MEMBER_MAX_EXTRA + 4096,
};

/* ---- the log ------------------------------------------------------------------- */

void view_log_add(struct view_log *l, const struct view_change *c, uint64_t batch)
{
    struct view_change *more;

    if (l->n == LOG_MAX) {
        l->n /= 2;
        memmove(l->list, l->list + LOG_MAX - l->n, l->n * sizeof *l->list);
    }
    l->last++;
    more = memory_grow(l->list, l->n, &l->room, sizeof *more);
    if (!more) {
        l->n = 0;
        return;
    }
    l->list = more;
    l->list[l->n] = *c;
    l->list[l->n].batch = batch;
    l->list[l->n++].record = NULL;
}

size_t view_log_since(const struct view_log *l, uint64_t after)
{
    return after >= l->last ? 0 : l->last - after <= l->n ? (size_t)(l->last - after) : SIZE_MAX;
}

uint64_t view_log_before_join(const struct view_log *l, int64_t incarnation)
{
    for (size_t i = l->n; i-- > 0;)
        if (l->list[i].kind == CHANGE_JOINED && l->list[i].incarnation == incarnation)
            return l->list[i].batch - 1;
    return 0;
}

void view_log_finish(struct view_log *l)
{
    free(l->list);
    *l = (struct view_log){ .n = 0 };
}

/* ---- bytes ----------------------------------------------------------------------- */

void view_news_begin(struct bytes *b, size_t members, uint64_t sum, size_t n)
{
    bytes_add_u64(b, members);
    bytes_add_u64(b, sum);
    bytes_add_u64(b, n);
}

void view_news_add(struct bytes *b, const struct view_change *c, const struct store_value *record)
{
    bytes_add_u64(b, c->kind);
    bytes_add_u64(b, (uint64_t)c->id);
    bytes_add_u64(b, (uint64_t)c->incarnation);
    if (c->kind == CHANGE_JOINED) {
        bytes_add_blob(b, record->data, record->len);
    } else if (c->kind == CHANGE_LEFT) {
        bytes_add_u64(b, c->died);
        bytes_add_u64(b, (uint64_t)c->by);
    }
}

static tenrec_status read_record(struct bytes_reader *r, struct view_change *c, tenrec_error *err)
{
    size_t len;
    const uint8_t *data = bytes_read_blob(r, RECORD_MAX, &len);
    /* Only read. */
    const struct store_value value = { (void *)(uintptr_t)data, len };
    tenrec_status st;

    if (r->bad)
        return TENREC_OK;
    if (!(c->record = memory_new(1, sizeof *c->record)))
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a worker's record");
    st = member_unpack(&value, c->record, err);
    r->bad = st == TENREC_OK && (c->record->rank != c->id ||
                                 c->record->incarnation != c->incarnation || c->record->world);
    return st;
}

static tenrec_status read_change(struct bytes_reader *r, struct view_change *c, tenrec_error *err)
{
    const uint64_t kind = bytes_read_u64(r), id = bytes_read_u64(r);

    c->kind = (enum view_change_kind)kind;
    c->id = (tenrec_peer)id;
    c->incarnation = (int64_t)bytes_read_u64(r);
    if (kind > CHANGE_LEAVING || id >= RANKS_MAX || c->incarnation < 1)
        r->bad = true;
    if (r->bad)
        return TENREC_OK;
    if (c->kind == CHANGE_JOINED)
        return read_record(r, c, err);
    if (c->kind == CHANGE_LEFT) {
        const int64_t by = (c->died = bytes_read_u64(r) != 0, (int64_t)bytes_read_u64(r));

        r->bad = r->bad || by < -1 || by >= RANKS_MAX;
        c->by = (tenrec_peer)by;
    }
    return TENREC_OK;
}

tenrec_status view_news_read(const void *data, size_t len, struct view_news *ret, tenrec_error *err)
{
    struct bytes_reader r = { .data = data, .len = len };
    struct view_news n = { .members = 0 };
    tenrec_status st = TENREC_OK;
    const uint64_t members = bytes_read_u64(&r);
    size_t count;

    n.sum = bytes_read_u64(&r);
    count = bytes_read_count(&r, CHANGES_MAX, CHANGE_SIZE);
    if (r.bad || members > RANKS_MAX)
        return tenrec_fail(err, TENREC_EPROTOCOL, "malformed changes of a view");
    n.members = (size_t)members;
    n.change = memory_new(count ? count : 1, sizeof *n.change);
    if (!n.change)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for %zu changes of a view", count);
    while (n.n < count && st == TENREC_OK && !r.bad)
        st = read_change(&r, &n.change[n.n++], err);
    if (st == TENREC_OK && (r.bad || r.at != r.len))
        st = tenrec_fail(err, TENREC_EPROTOCOL, "malformed changes of a view");
    if (st == TENREC_OK)
        *ret = n;
    else
        view_news_finish(&n);
    return st;
}

void view_news_finish(struct view_news *n)
{
    for (size_t i = 0; i < n->n; i++) {
        if (n->change[i].record)
            member_free(n->change[i].record);
        free(n->change[i].record);
    }
    free(n->change);
    *n = (struct view_news){ .members = 0 };
}
