/* SPDX-License-Identifier: Apache-2.0 */
#include "group/store/store_answer.h"
#include "group/store/store.h"
#include "group/store/store_request.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUESTS_KEY "/" STORE_REQUESTS_KEY

/* The entry of a key that is read. That of the counted requests becomes a key like others when a
 * client first reads it. */
static struct store_entry *answer_find(struct store_hub *hub, struct bytes_slice key)
{
    struct store_entry *e = NULL;
    char text[24];

    if (key.len != strlen(REQUESTS_KEY) || memcmp(key.data, REQUESTS_KEY, key.len) != 0)
        return store_table_find(&hub->table, key);
    snprintf(text, sizeof text, "%" PRIu64, atomic_load(&hub->requests));
    if (store_table_make(&hub->table, key, &e) == TENREC_OK)
        store_entry_set(&hub->table, e,
                        (struct bytes_slice){ (const uint8_t *)text, strlen(text) });
    return e;
}

static void kill_for(struct store_session *s, tenrec_status st)
{
    store_session_kill(s, st == TENREC_EINVAL
                              ? "the peer added to a value that is no number, or beyond 64 bits"
                          : st == TENREC_ENOMEM ? "no memory for the peer's request"
                                                : "the store or a value is full");
}

/* Counts a link that is walked. */
static void link_walked(struct store_hub *hub)
{
    hub->walked++;
    hub->steps++;
}

static void answer_blob(struct store_session *s, const void *data, size_t len)
{
    bytes_add_blob(&s->out, data, len);
    s->hub->steps += len / 1024;
}

/* Releases the sessions that wait for `e`, or in its barrier; only the first live one for one new
 * item of a queue, as only one session can pop the item. */
static void entry_wake(struct store_entry *e, enum store_link_kind kind, bool only_one)
{
    struct store_link *link, *next;

    for (link = e->links[kind]; link; link = next) {
        struct store_session *s = link->owner;
        next = link->next;
        link_walked(s->hub);
        if (s->dead)
            continue;
        store_session_unhang(s, link);
        if (s->n_missing == 0)
            store_session_release(s);
        if (only_one)
            break;
    }
}

static bool entry_is_watched(const struct store_entry *e)
{
    return e->links[STORE_LINK_WATCH];
}

enum change { UPDATED, CREATED, DELETED };

static void notify_watchers(struct store_entry *e, enum change change, struct bytes_slice old,
                            struct bytes_slice now)
{
    for (struct store_link *link = e->links[STORE_LINK_WATCH]; link; link = link->next) {
        struct store_session *s = link->owner;
        link_walked(s->hub);
        if (s->dead)
            continue;
        if (s->ops->full(s->arg)) {
            store_session_kill(s, "the peer does not read the changes that it watches");
            continue;
        }
        bytes_add_u8(&s->out, (uint8_t)change);
        answer_blob(s, e->key, e->key_len);
        answer_blob(s, old.data, old.len);
        answer_blob(s, now.data, now.len);
        store_session_flush_much(s);
        store_session_make_ready(s);
    }
}

/* A change of a key: keeps the old value for its watchers. */
struct changing {
    struct store_entry *e;
    void *old; /* owns; NULL without watchers */
    size_t old_len;
    bool was_there;
};

static bool change_begin(struct store_session *s, struct bytes_slice key, struct changing *c)
{
    *c = (struct changing){ .e = NULL };
    if (store_table_make(&s->hub->table, key, &c->e) != TENREC_OK) {
        store_session_kill(s, "the store is full");
        return false;
    }
    c->was_there = c->e->present;
    if (entry_is_watched(c->e)) {
        c->old = bytes_copy(c->e->value, c->e->value_len);
        c->old_len = c->old ? c->e->value_len : 0;
    }
    return true;
}

static void change_end(struct store_session *s, struct changing *c, tenrec_status st, bool changed)
{
    if (st == TENREC_OK && changed) {
        if (entry_is_watched(c->e))
            notify_watchers(c->e,
                            !c->e->present ? DELETED
                            : c->was_there ? UPDATED
                                           : CREATED,
                            (struct bytes_slice){ c->old, c->old_len },
                            (struct bytes_slice){ c->e->value, c->e->value_len });
        if (c->e->present)
            entry_wake(c->e, STORE_LINK_WAIT, false);
    }
    free(c->old);
    store_table_tidy(&s->hub->table, c->e);
    if (st != TENREC_OK)
        kill_for(s, st);
}

static void set_key(struct store_session *s, struct bytes_slice key, struct bytes_slice value,
                    bool append)
{
    struct changing c;
    tenrec_status st;

    if (!change_begin(s, key, &c))
        return;
    st = append ? store_entry_append(&s->hub->table, c.e, value)
                : store_entry_set(&s->hub->table, c.e, value);
    change_end(s, &c, st, true);
}

static void run_set(struct store_session *s, const struct store_request *r)
{
    set_key(s, r->key, r->value[0], r->op == STORE_OP_APPEND);
}

static void run_compare_set(struct store_session *s, const struct store_request *r)
{
    struct changing c;
    struct bytes_slice now;
    bool changed;
    tenrec_status st;

    if (!change_begin(s, r->key, &c))
        return;
    st = store_entry_compare_set(&s->hub->table, c.e, r->value[0], r->value[1], &now, &changed);
    if (st == TENREC_OK)
        answer_blob(s, now.data, now.len);
    change_end(s, &c, st, st == TENREC_OK && changed);
}

static void run_add(struct store_session *s, const struct store_request *r)
{
    struct changing c;
    tenrec_status st;
    int64_t sum = 0;

    if (!change_begin(s, r->key, &c))
        return;
    st = store_entry_add(&s->hub->table, c.e, r->number, &sum);
    if (st == TENREC_OK)
        bytes_add_u64(&s->out, (uint64_t)sum);
    change_end(s, &c, st, true);
}

static void run_delete(struct store_session *s, const struct store_request *r)
{
    struct store_entry *e = store_table_find(&s->hub->table, r->key);
    bool there = e && e->present;
    struct changing c;

    bytes_add_u64(&s->out, there);
    if (!there || !change_begin(s, r->key, &c))
        return;
    store_entry_unset(&s->hub->table, c.e);
    change_end(s, &c, TENREC_OK, true);
}

/* A missing key is answered by an empty value, as torch's libuv server does. */
static void answer_value(struct store_session *s, struct bytes_slice key)
{
    const struct store_entry *e = answer_find(s->hub, key);

    answer_blob(s, e ? e->value : NULL, e ? e->value_len : 0);
}

static void run_get(struct store_session *s, const struct store_request *r)
{
    answer_value(s, r->key);
}

/* Answers in pieces, as the peer reads them: each value is current when it is written. */
static void run_multi_get(struct store_session *s, const struct store_request *r)
{
    struct bytes_slice list = { r->list.data + s->answered_len, r->list.len - s->answered_len };

    for (; s->n_answered < r->n && !s->dead && !s->ops->full(s->arg); s->n_answered++) {
        answer_value(s, store_request_next(&list));
        s->answered_len = r->list.len - list.len;
        store_session_flush_much(s);
    }
}

static void run_multi_set(struct store_session *s, const struct store_request *r)
{
    struct bytes_slice list = r->list;

    for (size_t i = 0; i < r->n && !s->dead; i++) {
        struct bytes_slice key = store_request_next(&list);
        set_key(s, key, store_request_next(&list), false);
    }
}

static void run_check(struct store_session *s, const struct store_request *r)
{
    struct bytes_slice list = r->list;
    bool all = true;

    for (size_t i = 0; i < r->n; i++)
        all &= store_entry_there(answer_find(s->hub, store_request_next(&list)));
    bytes_add_u8(&s->out, !all);
}

/* Hangs the session on a key, which need not exist. Returns false if the store is full. */
static bool hang_on_key(struct store_session *s, struct bytes_slice key, enum store_link_kind kind)
{
    struct store_entry *e;

    if (store_table_make(&s->hub->table, key, &e) == TENREC_OK && store_session_hang(s, e, kind))
        return true;
    store_table_tidy(&s->hub->table, e);
    store_session_kill(s, "the store is full");
    return false;
}

static void run_wait(struct store_session *s, const struct store_request *r)
{
    struct bytes_slice list = r->list;

    for (size_t i = 0; i < r->n; i++) {
        struct bytes_slice key = store_request_next(&list);
        if (!store_entry_there(store_table_find(&s->hub->table, key)) &&
            !hang_on_key(s, key, STORE_LINK_WAIT))
            return;
    }
    if (s->n_missing)
        s->state = STORE_WAITING;
    else
        bytes_add_u8(&s->out, 0);
}

static void run_watch(struct store_session *s, const struct store_request *r)
{
    if (hang_on_key(s, r->key, STORE_LINK_WATCH))
        bytes_add_u8(&s->out, 3);
}

static void run_push(struct store_session *s, const struct store_request *r)
{
    struct store_entry *e;
    tenrec_status st = store_table_make(&s->hub->table, r->key, &e);

    if (st == TENREC_OK)
        st = store_entry_push(&s->hub->table, e, r->value[0]);
    if (st == TENREC_OK)
        entry_wake(e, STORE_LINK_WAIT, true);
    store_table_tidy(&s->hub->table, e);
    if (st != TENREC_OK)
        kill_for(s, st);
}

static void run_pop(struct store_session *s, const struct store_request *r)
{
    struct store_entry *e = store_table_find(&s->hub->table, r->key);
    struct store_item *item;

    bytes_add_u64(&s->out, e ? e->n_items : 0);
    if (e && (item = store_entry_pop(&s->hub->table, e))) {
        answer_blob(s, item->data, item->len);
        free(item);
    }
    store_table_tidy(&s->hub->table, e);
}

static void run_queue_len(struct store_session *s, const struct store_request *r)
{
    const struct store_entry *e = store_table_find(&s->hub->table, r->key);

    bytes_add_u64(&s->out, e ? e->n_items : 0);
}

static void run_num_keys(struct store_session *s, const struct store_request *r)
{
    (void)r;
    bytes_add_u64(&s->out, s->hub->table.n_keys);
}

/* Answers in pieces, as the peer reads them. The number of keys is the first, so all pieces must be
 * of the same keys. */
static void run_list_keys(struct store_session *s, const struct store_request *r)
{
    const struct store_table *t = &s->hub->table;

    (void)r;
    if (s->n_answered == 0) {
        s->n_changes = t->n_changes;
        bytes_add_u64(&s->out, t->n_keys);
    } else if (s->n_changes != t->n_changes) {
        store_session_kill(s, "keys came or went while the peer did not read the list of them");
    }
    for (; s->n_answered < t->n_buckets && !s->dead && !s->ops->full(s->arg); s->n_answered++) {
        for (const struct store_entry *e = t->bucket[s->n_answered]; e; e = e->chain)
            if (e->present)
                answer_blob(s, e->key, e->key_len);
        store_session_flush_much(s);
        s->hub->steps++;
    }
}

/* As in torch the key counts the workers that arrived, and stays; a later worker passes at once. */
static void run_barrier(struct store_session *s, const struct store_request *r)
{
    struct changing c;
    int64_t count = 0;
    tenrec_status st;

    if (r->number <= 0) {
        store_session_kill(s, "the peer asked for a barrier of less than one");
        return;
    }
    if (!change_begin(s, r->key, &c))
        return;
    st = store_entry_add(&s->hub->table, c.e, 1, &count);
    if (st == TENREC_OK && count >= r->number) {
        bytes_add_u8(&s->out, 0);
        entry_wake(c.e, STORE_LINK_BARRIER, false);
    } else if (st == TENREC_OK) {
        s->state = STORE_WAITING;
        if (!store_session_hang(s, c.e, STORE_LINK_BARRIER))
            st = TENREC_ETOOBIG;
    }
    change_end(s, &c, st, st == TENREC_OK);
}

static void run_validate(struct store_session *s, const struct store_request *r)
{
    if (r->number != STORE_MAGIC)
        store_session_kill(s, "the peer's magic number is wrong");
}

static void run_ping(struct store_session *s, const struct store_request *r)
{
    bytes_add_u32(&s->out, (uint32_t)r->number);
}

static void run_cancel(struct store_session *s, const struct store_request *r)
{
    (void)r;
    store_session_unhang_all(s, STORE_LINK_WATCH);
    s->state = STORE_READING;
    bytes_add_u8(&s->out, 1);
}

typedef void run_fn(struct store_session *s, const struct store_request *r);

static run_fn *const runs[STORE_OP_COUNT] = {
    [STORE_OP_VALIDATE] = run_validate,
    [STORE_OP_SET] = run_set,
    [STORE_OP_COMPARE_SET] = run_compare_set,
    [STORE_OP_GET] = run_get,
    [STORE_OP_ADD] = run_add,
    [STORE_OP_CHECK] = run_check,
    [STORE_OP_WAIT] = run_wait,
    [STORE_OP_NUM_KEYS] = run_num_keys,
    [STORE_OP_WATCH_KEY] = run_watch,
    [STORE_OP_DELETE_KEY] = run_delete,
    [STORE_OP_APPEND] = run_set,
    [STORE_OP_MULTI_GET] = run_multi_get,
    [STORE_OP_MULTI_SET] = run_multi_set,
    [STORE_OP_CANCEL_WAIT] = run_cancel,
    [STORE_OP_PING] = run_ping,
    [STORE_OP_QUEUE_PUSH] = run_push,
    [STORE_OP_QUEUE_POP] = run_pop,
    [STORE_OP_QUEUE_LEN] = run_queue_len,
    [STORE_OP_LIST_KEYS] = run_list_keys,
    [STORE_OP_BARRIER] = run_barrier,
};

bool store_answer(struct store_session *s, const struct store_request *r)
{
    runs[r->op](s, r);
    if (r->op == STORE_OP_LIST_KEYS)
        return s->n_answered == s->hub->table.n_buckets || s->dead;
    return r->op != STORE_OP_MULTI_GET || s->n_answered == r->n || s->dead;
}
