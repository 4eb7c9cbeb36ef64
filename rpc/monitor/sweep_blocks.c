/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_blocks.c - what the blocks of ids have confirmed, and the changes that a message to each
 * has. monitor.lock guards the state. */
#include "rpc/monitor/monitor_inside.h"

#include "core/base/memory.h"

#include <stdlib.h>

enum { NEWS_MAX = 1024 /* changes that a message tells */, NEWS_HEAD = 64 };

static struct confirmed *confirmed_find(const struct monitor *m, const struct spread_child *c)
{
    for (size_t i = 0; i < m->n_confirmed; i++)
        if (m->confirmed[i].of.incarnation == c->incarnation &&
            m->confirmed[i].of.level == c->level)
            return &m->confirmed[i];
    return NULL;
}

static void confirmed_forget_gone(struct monitor *m)
{
    size_t kept = 0;

    for (size_t i = 0; i < m->n_confirmed; i++)
        if (membership_view_find(&m->view, m->confirmed[i].of.id, m->confirmed[i].of.incarnation))
            m->confirmed[kept++] = m->confirmed[i];
    m->n_confirmed = kept;
}

/* Out of memory the block is asked once more. */
static void confirmed_note(struct monitor *m, const struct spread_child *c, uint64_t number)
{
    struct confirmed *one = confirmed_find(m, c), *more;

    if (!one) {
        confirmed_forget_gone(m);
        more = memory_grow(m->confirmed, m->n_confirmed, &m->room_confirmed, sizeof *more);
        if (!more)
            return;
        m->confirmed = more;
        one = &m->confirmed[m->n_confirmed++];
        *one = (struct confirmed){ .of = *c };
    }
    if (number > one->number)
        one->number = number;
}

uint64_t sweep_block_number(const struct monitor *m, const struct spread_child *c)
{
    const struct confirmed *one = confirmed_find(m, c);

    return one ? one->number : 0;
}

void sweep_confirmed(struct monitor *m, const struct sweep_send *s)
{
    m->pump = true;
    if (s->kind == SWEEP_DOWN) {
        confirmed_note(m, &s->to, s->covers);
        return;
    }
    if (s->covers > m->ups.confirmed)
        m->ups.confirmed = s->covers;
    if (s->log > m->ups.log_confirmed)
        m->ups.log_confirmed = s->log;
}

void sweep_refused(struct monitor *m, const struct sweep_send *s)
{
    m->pump = true;
    m->poll = true; /* it may have left */
    sweep_shun(m, &s->to);
}

/* ---- changes ----------------------------------------------------------------------- */

/* Adds the last `since` changes; without `whole` only changes that no view has. Returns their
 * number.
 */
static size_t pack_list(struct monitor *m, size_t since, bool whole, struct bytes *ret)
{
    size_t n = 0;

    for (size_t i = since < m->log.n ? m->log.n - since : 0; i < m->log.n; i++) {
        const struct view_change *c = &m->log.list[i];
        const bool there = membership_view_find(&m->view, c->id, c->incarnation) != NULL;
        const struct member *record = NULL;
        struct store_value packed = { 0 };

        if (c->kind == CHANGE_LEFT ? !whole : !there || (c->kind == CHANGE_JOINED && !whole))
            continue;
        if (c->kind == CHANGE_JOINED) {
            if (!(record = monitor_record(m, c->id, c->incarnation)))
                continue;
            member_pack(record, &packed);
        }
        view_news_add(ret, c, &packed);
        free(packed.data);
        n++;
    }
    return n;
}

/* The changes after number `after`. If they are too many, their readers go to the store. */
void sweep_pack_changes(struct monitor *m, uint64_t after, bool all, struct bytes *ret)
{
    const size_t since = view_log_since(&m->log, after);
    bool whole = all && since <= NEWS_MAX;
    struct bytes list = { 0 };
    size_t n = pack_list(m, since, whole, &list);

    if (whole && list.len > SWEEP_NEWS_MAX - NEWS_HEAD) {
        bytes_free(&list);
        whole = false;
        n = pack_list(m, since, whole, &list);
    }
    view_news_begin(ret, whole ? m->view.n : 0, m->view.sum, n);
    bytes_add(ret, list.data, list.len);
    ret->failed = ret->failed || list.failed;
    bytes_free(&list);
}
