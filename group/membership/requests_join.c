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

/* Makes the name of a joiner from its pattern, and adds it to `v`. Returns false if its id or name
 * is taken. */
static bool add_joiner(struct request *q, struct membership_view *v)
{
    char name[TENREC_NAME_MAX + 1];
    const struct membership_view_entry e = { q->id, q->incarnation, name };

    if (q->id < 0 || membership_view_by_id(v, q->id) ||
        ranks_make_name(q->name, q->id, name, NULL) != TENREC_OK ||
        ranks_check_name("worker name", name, NULL) != TENREC_OK ||
        membership_view_by_name(v, name) || membership_view_add(v, &e, NULL) != TENREC_OK)
        return false;
    snprintf(q->name, sizeof q->name, "%s", name);
    return true;
}

/* The id that a holder has given that died since; or the joiner's wish stays. */
static void take_reserved(struct request *q, const struct reservations *s,
                          struct membership_view *v)
{
    const struct reservation *given = reservations_find(s, q->ticket);

    if (!given)
        return;
    q->state = REQUEST_REFUSED;
    if (q->id >= 0 && q->id != given->id)
        return;
    q->id = given->id;
    q->incarnation = given->incarnation;
    if (add_joiner(q, v))
        q->state = REQUEST_RESERVED;
}

/* Puts the joiners that have an id into `v`. *ret_open: the number of the others. */
static tenrec_status find_reserved(struct requests *q, const struct reservations *s,
                                   struct membership_view *v, size_t *ret_open, tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    *ret_open = 0;
    for (size_t i = 0; i < q->n && st == TENREC_OK; i++) {
        struct request *one = &q->list[i];
        const struct membership_view_entry e = { one->id, one->incarnation, one->name };

        if (is_open(one)) {
            take_reserved(one, s, v);
            *ret_open += is_open(one);
        } else if (one->kind == REQUEST_JOIN && one->state != REQUEST_REFUSED &&
                   !membership_view_by_id(v, e.id)) {
            st = membership_view_add(v, &e, err);
        }
    }
    return st;
}

/* Gives ids to the joiners that have none. */
static tenrec_status reserve_open(struct requests *q, struct reservations *s,
                                  struct membership_view *v, int64_t incarnation, tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    for (size_t i = 0; i < q->n && st == TENREC_OK; i++) {
        struct request *one = &q->list[i];

        if (!is_open(one))
            continue;
        if (one->id < 0)
            one->id = membership_view_free_id(v);
        one->incarnation = incarnation++;
        one->state = REQUEST_RESERVED;
        if (add_joiner(one, v)) {
            st = reservations_add(
                s, &(struct reservation){ one->ticket, one->id, one->incarnation }, err);
        } else {
            one->state = REQUEST_REFUSED;
            one->incarnation = 0;
        }
    }
    return st;
}

/* Tells the joiners that were open their ids, or that they are called. If another holder has given
 * ids meanwhile, we have lost the lock: that holder tells them. */
static void tell_reserved(struct membership_list *r, const bool *open, bool lost,
                          uint64_t deadline_ns)
{
    struct requests *q = &r->requests;
    struct ticket_keys k;
    char text[LEASE_ANSWER];

    if (ticket_keys_init(&k, q->n, NULL) != TENREC_OK) {
        ticket_keys_finish(&k);
        return;
    }
    for (size_t i = 0; i < q->n; i++) {
        struct request *one = &q->list[i];

        if (!open[i])
            continue;
        if (lost && one->state == REQUEST_RESERVED)
            one->state = REQUEST_REFUSED;
        else if (one->state == REQUEST_RESERVED)
            request_write_answer(one, text);
        if (one->state == REQUEST_RESERVED || !one->incarnation)
            ticket_keys_set(&k, &r->lock.lease, one->ticket, LEASE_TURN,
                            one->incarnation ? text : LEASE_CALL);
    }
    store_set_all(r->store, k.key, k.value, k.n, deadline_ns, NULL);
    ticket_keys_finish(&k);
}

static tenrec_status reserve_all(struct membership_list *r, struct reservations *s,
                                 struct membership_view *v, uint64_t deadline_ns, bool *ret_lost,
                                 tenrec_error *err)
{
    const struct membership_view_entry me = { r->id, r->incarnation, r->name };
    struct requests *q = &r->requests;
    int64_t last = 0;
    size_t open = 0;
    bool done = true;
    tenrec_status st = membership_list_list(r->store, deadline_ns, v, NULL, err);

    if (st == TENREC_OK && !membership_view_by_id(v, me.id))
        st = membership_view_add(v, &me, err);
    if (st == TENREC_OK)
        st = reservations_read(r, deadline_ns, s, err);
    if (st == TENREC_OK)
        st = find_reserved(q, s, v, &open, err);
    if (st == TENREC_OK && open)
        st = store_add(r->store, "incarnations", (int64_t)open, deadline_ns, &last, err);
    if (st == TENREC_OK && open)
        st = reserve_open(q, s, v, last - (int64_t)open + 1, err);
    if (st == TENREC_OK && open)
        st = reservations_replace(r, s, q->from, deadline_ns, &done, err);
    *ret_lost = !done;
    return st;
}

tenrec_status requests_reserve(struct membership_list *r, uint64_t deadline_ns, bool *ret_some,
                               tenrec_error *err)
{
    struct membership_view v = { .version = 0 };
    struct reservations s = { .n = 0 };
    struct requests *q = &r->requests;
    bool *open = memory_new(q->n + 1, sizeof *open), lost = false;
    tenrec_status st = TENREC_OK;

    *ret_some = false;
    if (!open)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the requests of %zu workers", q->n);
    for (size_t i = 0; i < q->n; i++) {
        open[i] = is_open(&q->list[i]);
        *ret_some = *ret_some || open[i];
    }
    if (*ret_some)
        st = reserve_all(r, &s, &v, deadline_ns, &lost, err);
    if (*ret_some && st == TENREC_OK)
        tell_reserved(r, open, lost, deadline_ns);
    reservations_finish(&s);
    membership_view_finish(&v);
    free(open);
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
