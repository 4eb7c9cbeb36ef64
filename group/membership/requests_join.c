/* SPDX-License-Identifier: Apache-2.0 */
/* requests_join.c - the holder of the lock gives ids to those that ask to join, and reads their
 * records. */
#include "group/membership/requests.h"

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "group/membership/membership.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_ROUND_MS = 50, LONGEST_ROUND_MS = 400 };

static bool is_open(const struct request *q)
{
    return q->kind == REQUEST_JOIN && q->state == REQUEST_OPEN;
}

/* The id in an answer: of ours, or of a holder before. */
static void take_answer(struct request *q, const char *text)
{
    q->state = request_read_answer(text, q->id, &q->id, &q->incarnation, NULL) == TENREC_OK
                   ? REQUEST_RESERVED
                   : REQUEST_REFUSED;
}

/* Makes the name of a joiner from its pattern, and adds it to `v`. Returns false if its id or name
 * is taken. */
static bool add_joiner(struct request *q, struct membership_view *v)
{
    struct membership_view_entry e = { .id = q->id, .incarnation = q->incarnation };

    if (q->id < 0 || membership_view_by_id(v, q->id) ||
        ranks_make_name(q->name, q->id, e.name, NULL) != TENREC_OK ||
        ranks_check_name("worker name", e.name, NULL) != TENREC_OK ||
        membership_view_by_name(v, e.name) || membership_view_add(v, &e, NULL) != TENREC_OK)
        return false;
    snprintf(q->name, sizeof q->name, "%s", e.name);
    return true;
}

/* Ids that a holder has given that died since. */
static tenrec_status find_answers(struct membership_list *r, struct membership_view *v,
                                  uint64_t deadline_ns, size_t *ret_open, tenrec_error *err)
{
    struct requests *q = &r->requests;
    struct ticket_keys k;
    tenrec_status st = ticket_keys_init(&k, q->n, err);
    size_t at = 0;

    *ret_open = 0;
    for (size_t i = 0; i < q->n && st == TENREC_OK; i++)
        if (is_open(&q->list[i]))
            ticket_keys_add(&k, &r->lock.lease, q->list[i].ticket, LEASE_TURN);
    if (st == TENREC_OK && k.n)
        st = store_read_all(r->store, k.key, k.n, deadline_ns, k.value, err);
    for (size_t i = 0; i < q->n && st == TENREC_OK; i++) {
        struct request *one = &q->list[i];

        if (is_open(one)) {
            const char *text = k.value[at++].data;

            if (text)
                take_answer(one, text);
            if (one->state == REQUEST_RESERVED && !add_joiner(one, v))
                one->state = REQUEST_REFUSED;
            *ret_open += is_open(one);
        } else if (one->kind == REQUEST_JOIN && one->state != REQUEST_REFUSED) {
            struct membership_view_entry e = { .id = one->id, .incarnation = one->incarnation };

            snprintf(e.name, sizeof e.name, "%s", one->name);
            if (!membership_view_by_id(v, e.id))
                st = membership_view_add(v, &e, err);
        }
    }
    ticket_keys_finish(&k);
    return st;
}

/* Gives an id to one joiner, unless a holder that is slow has done so at the same time. */
static tenrec_status reserve_one(struct membership_list *r, struct request *q,
                                 struct membership_view *v, int64_t incarnation,
                                 uint64_t deadline_ns, tenrec_error *err)
{
    char key[LEASE_KEY], text[LEASE_ANSWER], *now = NULL;
    tenrec_status st;

    if (q->id < 0)
        q->id = membership_view_free_id(v);
    q->incarnation = incarnation;
    if (!add_joiner(q, v)) {
        q->state = REQUEST_REFUSED;
        q->incarnation = 0;
        requests_tell(r, q, LEASE_TURN, LEASE_CALL, deadline_ns);
        return TENREC_OK;
    }
    request_write_answer(q, text);
    lease_word_key(&r->lock.lease, q->ticket, LEASE_TURN, key);
    st = store_swap_text(r->store, key, "", text, deadline_ns, &now, err);
    if (st == TENREC_OK)
        q->state = strcmp(now, text) == 0 ? REQUEST_RESERVED : REQUEST_REFUSED;
    free(now);
    return st;
}

tenrec_status requests_reserve(struct membership_list *r, uint64_t deadline_ns, bool *ret_some,
                               tenrec_error *err)
{
    struct membership_view_entry me = { .id = r->id, .incarnation = r->incarnation };
    struct membership_view v = { .version = 0 };
    struct requests *q = &r->requests;
    int64_t last = 0;
    size_t open = 0;
    tenrec_status st;

    *ret_some = false;
    for (size_t i = 0; i < q->n; i++)
        *ret_some = *ret_some || is_open(&q->list[i]);
    if (!*ret_some)
        return TENREC_OK;
    st = membership_list_list(r->store, deadline_ns, &v, NULL, err);
    snprintf(me.name, sizeof me.name, "%s", r->name);
    if (st == TENREC_OK && !membership_view_by_id(&v, me.id))
        st = membership_view_add(&v, &me, err);
    if (st == TENREC_OK)
        st = find_answers(r, &v, deadline_ns, &open, err);
    if (st == TENREC_OK && open)
        st = store_add(r->store, "incarnations", (int64_t)open, deadline_ns, &last, err);
    for (size_t i = 0; i < q->n && st == TENREC_OK; i++)
        if (is_open(&q->list[i]))
            st = reserve_one(r, &q->list[i], &v, last - (int64_t)--open, deadline_ns, err);
    membership_view_finish(&v);
    return st;
}

/* ---- records ------------------------------------------------------------------- */

static void take_record(struct membership_list *r, struct request *q,
                        const struct store_value *value)
{
    struct member m;
    tenrec_error why;

    q->state = REQUEST_REFUSED;
    if (member_unpack(value, &m, &why) != TENREC_OK) {
        log_line(TENREC_LOG_WARN, "group", "\"%s\" of group \"%s\": %s", q->name, r->group,
                 why.text);
        return;
    }
    if (m.rank == q->id && m.incarnation == q->incarnation && m.world == 0 &&
        strcmp(m.name, q->name) == 0 &&
        member_check_backend(&m, r->group, r->id, r->backend, NULL) == TENREC_OK)
        q->state = REQUEST_READY;
    member_free(&q->record);
    q->record = m;
}

static bool has_ended(const struct request *q)
{
    const struct member process = {
        .host = q->place.host, .boot = q->place.boot, .pid = q->pid, .start = q->start
    };

    return member_was_here(&process) && !member_runs_here(&process);
}

/* One round. *ret_n: the joiners that have no record yet. */
static tenrec_status await_round(struct membership_list *r, uint64_t until_ns, uint64_t deadline_ns,
                                 size_t *ret_n, tenrec_error *err)
{
    struct requests *q = &r->requests;
    struct ticket_keys k;
    bool *missing = memory_new(q->n + 1, sizeof *missing);
    tenrec_status st = ticket_keys_init(&k, q->n, err);
    size_t at = 0;

    if (st == TENREC_OK && !missing)
        st = tenrec_fail(err, TENREC_ENOMEM, "no memory for the records of %zu workers", q->n);
    for (size_t i = 0; i < q->n && st == TENREC_OK; i++)
        if (q->list[i].state == REQUEST_RESERVED) {
            membership_record_key(k.text[k.n], q->list[i].incarnation);
            k.key[k.n] = k.text[k.n];
            k.n++;
        }
    *ret_n = 0;
    if (st == TENREC_OK && k.n) {
        st = store_wait_round(r->store, k.key, k.n, until_ns, deadline_ns, missing, err);
        if (st == TENREC_OK || st == TENREC_ETIMEDOUT)
            st = store_read_all(r->store, k.key, k.n, deadline_ns, k.value, err);
    }
    for (size_t i = 0; i < q->n && st == TENREC_OK; i++) {
        struct request *one = &q->list[i];

        if (one->state != REQUEST_RESERVED)
            continue;
        if (k.value[at].data)
            take_record(r, one, &k.value[at]);
        else if (has_ended(one))
            one->state = REQUEST_REFUSED;
        else
            ++*ret_n;
        at++;
    }
    ticket_keys_finish(&k);
    free(missing);
    return st;
}

tenrec_status requests_await(struct membership_list *r, uint64_t until_ns, uint64_t deadline_ns,
                             tenrec_error *err)
{
    uint64_t round_ms = FIRST_ROUND_MS;
    size_t left;
    tenrec_status st;

    do {
        const uint64_t end_ns = clock_deadline_ms(round_ms);

        st = await_round(r, end_ns < until_ns ? end_ns : until_ns, deadline_ns, &left, err);
        round_ms = round_ms * 2 < LONGEST_ROUND_MS ? round_ms * 2 : LONGEST_ROUND_MS;
    } while (st == TENREC_OK && left && !clock_passed(until_ns));
    for (size_t i = 0; i < r->requests.n; i++)
        if (r->requests.list[i].state == REQUEST_RESERVED)
            r->requests.list[i].state = REQUEST_REFUSED;
    return st;
}
