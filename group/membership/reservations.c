/* SPDX-License-Identifier: Apache-2.0 */
/* reservations.c - the ids that holders of the lock have given to joiners, by ticket: one value. A
 * holder tells no joiner an id before the value has it, so all holders tell the same. */
#include "group/membership/requests.h"

#include "core/base/log.h"
#include "core/base/memory.h"
#include "group/membership/membership.h"
#include "group/store/bytes.h"

#include <stdlib.h>
#include <string.h>

#define RESERVATIONS "lock/ids"
#define MAGIC 0x31495254u /* "TRI1" */

enum { SIZE = 3 * sizeof(uint64_t), MOST = 1 << 16 };

void reservations_finish(struct reservations *s)
{
    free(s->list);
    free(s->raw.data);
    *s = (struct reservations){ .n = 0 };
}

static bool reservations_unpack(struct reservations *s)
{
    struct bytes_reader r = { .data = s->raw.data, .len = s->raw.len };
    const bool known = bytes_read_u32(&r) == MAGIC;
    const size_t n = bytes_read_count(&r, MOST, SIZE);

    if (!known || r.bad || !(s->list = memory_new(n + 1, sizeof *s->list)))
        return false;
    s->room = n + 1;
    for (size_t i = 0; i < n; i++) {
        const int64_t ticket = (int64_t)bytes_read_u64(&r), id = (int64_t)bytes_read_u64(&r);
        const int64_t incarnation = (int64_t)bytes_read_u64(&r);

        if (ticket <= (i ? s->list[i - 1].ticket : 0) || id < 0 || id >= RANKS_MAX ||
            incarnation < 1)
            return false;
        s->list[s->n++] = (struct reservation){ ticket, (tenrec_peer)id, incarnation };
    }
    return true;
}

tenrec_status reservations_read(struct membership_list *r, uint64_t deadline_ns,
                                struct reservations *ret, tenrec_error *err)
{
    tenrec_status st;

    *ret = (struct reservations){ .n = 0 };
    st = store_read(r->store, RESERVATIONS, deadline_ns, &ret->raw, err);
    if (st != TENREC_OK || !ret->raw.data || reservations_unpack(ret))
        return st;
    log_line(TENREC_LOG_WARN, "group", "the key %s of group \"%s\" is malformed: ignored",
             RESERVATIONS, r->group);
    ret->n = 0;
    return TENREC_OK;
}

/* The index of `ticket`, or of the next higher one. */
static size_t reservations_index(const struct reservations *s, int64_t ticket)
{
    size_t low = 0, high = s->n;

    while (low < high) {
        const size_t mid = low + (high - low) / 2;

        if (s->list[mid].ticket < ticket)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

const struct reservation *reservations_find(const struct reservations *s, int64_t ticket)
{
    const size_t at = reservations_index(s, ticket);

    return at < s->n && s->list[at].ticket == ticket ? &s->list[at] : NULL;
}

tenrec_status reservations_add(struct reservations *s, const struct reservation *one,
                               tenrec_error *err)
{
    const size_t at = reservations_index(s, one->ticket);
    struct reservation *more = memory_grow(s->list, s->n, &s->room, sizeof *more);

    if (!more)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the id of a worker");
    s->list = more;
    memmove(more + at + 1, more + at, (s->n - at) * sizeof *more);
    more[at] = *one;
    s->n++;
    return TENREC_OK;
}

tenrec_status reservations_replace(struct membership_list *r, struct reservations *s, int64_t from,
                                   uint64_t deadline_ns, bool *ret_done, tenrec_error *err)
{
    const size_t served = reservations_index(s, from);
    struct store_value now = { 0 };
    struct bytes b = { 0 };
    tenrec_status st;

    bytes_add_u32(&b, MAGIC);
    bytes_add_u64(&b, s->n - served);
    for (size_t i = served; i < s->n; i++) {
        bytes_add_u64(&b, (uint64_t)s->list[i].ticket);
        bytes_add_u64(&b, (uint64_t)s->list[i].id);
        bytes_add_u64(&b, (uint64_t)s->list[i].incarnation);
    }
    if (b.failed)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the ids of %zu workers", s->n);
    st = store_compare_set(r->store, RESERVATIONS, &s->raw, &(struct store_value){ b.data, b.len },
                           deadline_ns, &now, err);
    *ret_done = st == TENREC_OK && now.len == b.len && memcmp(now.data, b.data, b.len) == 0;
    free(now.data);
    bytes_free(&b);
    return st;
}
