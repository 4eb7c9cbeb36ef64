/* SPDX-License-Identifier: Apache-2.0 */
#include "group/membership/requests.h"

#include "core/base/log.h"
#include "core/base/memory.h"
#include "group/membership/membership.h"
#include "group/store/bytes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define TICKETS "lock/tickets"
#define HEAD "lock/head" /* the first ticket that may be unserved */
#define ENTERED "in"

enum { REQUESTS_MAX = 4096 /* at once */ };

/* ---- reading ------------------------------------------------------------------- */

void requests_forget(struct requests *q)
{
    for (size_t i = 0; i < q->n; i++)
        member_free(&q->list[i].record);
    free(q->list);
    *q = (struct requests){ .n = 0 };
}

static int compare_tickets(const void *a, const void *b)
{
    const int64_t x = ((const struct request *)a)->ticket;
    const int64_t y = ((const struct request *)b)->ticket;

    return (x > y) - (x < y);
}

static bool is_known(const struct requests *q, int64_t ticket)
{
    const struct request one = { .ticket = ticket };

    return q->n > 0 && bsearch(&one, q->list, q->n, sizeof one, compare_tickets);
}

/* A head that is malformed is replaced by the next holder: requests before us wait longer. */
static tenrec_status read_head(struct membership_list *r, int64_t tail, uint64_t deadline_ns,
                               int64_t *ret, tenrec_error *err)
{
    struct store_value v;
    tenrec_status st = store_read(r->store, HEAD, deadline_ns, &v, err);

    *ret = 1;
    if (st == TENREC_OK && v.data &&
        (!bytes_number((struct bytes_slice){ v.data, v.len }, ret) || *ret < 1 ||
         *ret > tail + 1)) {
        log_line(TENREC_LOG_WARN, "group", "the key %s of group \"%s\" is malformed: ignored", HEAD,
                 r->group);
        *ret = r->lock.lease.ticket;
    }
    free(v.data);
    return st;
}

static tenrec_status add_request(struct membership_list *r, int64_t ticket,
                                 const struct store_value *value, tenrec_error *err)
{
    struct requests *q = &r->requests;
    struct request *more = memory_grow(q->list, q->n, &q->room, sizeof *more);
    tenrec_error why;

    if (!more)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the request of a worker");
    q->list = more;
    more = &q->list[q->n++];
    if (request_unpack(value, more, &why) != TENREC_OK) {
        log_line(TENREC_LOG_WARN, "group", "ticket %" PRId64 " of group \"%s\": %s", ticket,
                 r->group, why.text);
        *more = (struct request){ .kind = REQUEST_JOIN, .id = -1, .state = REQUEST_REFUSED };
    }
    more->ticket = ticket;
    return TENREC_OK;
}

static tenrec_status read_tickets(struct membership_list *r, uint64_t deadline_ns,
                                  tenrec_error *err)
{
    struct requests *q = &r->requests;
    struct ticket_keys k;
    int64_t *ticket = memory_new((size_t)(q->to - q->from) + 2, sizeof *ticket);
    tenrec_status st = ticket_keys_init(&k, (size_t)(q->to - q->from) + 1, err);

    for (int64_t t = q->from; t <= q->to && st == TENREC_OK && ticket; t++)
        if (t != r->lock.lease.ticket && !is_known(q, t)) {
            ticket[k.n] = t;
            ticket_keys_add(&k, &r->lock.lease, t, LEASE_WANTS);
        }
    if (st == TENREC_OK && !ticket)
        st = tenrec_fail(err, TENREC_ENOMEM, "no memory for the requests of workers");
    if (st == TENREC_OK && k.n)
        st = store_read_all(r->store, k.key, k.n, deadline_ns, k.value, err);
    for (size_t i = 0; i < k.n && st == TENREC_OK; i++)
        if (k.value[i].data)
            st = add_request(r, ticket[i], &k.value[i], err);
    if (q->n)
        qsort(q->list, q->n, sizeof *q->list, compare_tickets);
    ticket_keys_finish(&k);
    free(ticket);
    return st;
}

tenrec_status requests_load(struct membership_list *r, uint64_t deadline_ns, tenrec_error *err)
{
    struct requests *q = &r->requests;
    int64_t tail;
    tenrec_status st = store_add(r->store, TICKETS, 0, deadline_ns, &tail, err);

    if (st == TENREC_OK && !q->from)
        st = read_head(r, tail, deadline_ns, &q->from, err);
    if (st != TENREC_OK)
        return st;
    q->to = tail - q->from < REQUESTS_MAX ? tail : q->from + REQUESTS_MAX - 1;
    return read_tickets(r, deadline_ns, err);
}

/* ---- the list ------------------------------------------------------------------ */

/* A member that was removed itself removes no other. */
size_t requests_remove(const struct requests *q, struct membership_view *v)
{
    size_t n = 0;

    for (size_t i = 0; i < q->n; i++) {
        const struct request *one = &q->list[i];

        if (one->kind == REQUEST_REMOVE && membership_view_find(v, one->by, one->by_incarnation))
            n += membership_view_remove(v, one->id, one->incarnation, one->died, one->by);
    }
    return n;
}

tenrec_status requests_enter(const struct requests *q, struct membership_view *v, tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    for (size_t i = 0; i < q->n && st == TENREC_OK; i++) {
        const struct membership_view_entry e = { q->list[i].id, q->list[i].incarnation,
                                                 q->list[i].name };

        if (q->list[i].state == REQUEST_READY && !membership_view_by_id(v, e.id) &&
            !membership_view_by_name(v, e.name))
            st = membership_view_add(v, &e, err);
    }
    return st;
}

static void add_answer(struct ticket_keys *k, const struct lease *l, const struct request *q,
                       const struct membership_view *v)
{
    if (q->kind == REQUEST_REMOVE)
        ticket_keys_set(k, l, q->ticket, LEASE_TURN, ENTERED);
    else if (q->incarnation)
        ticket_keys_set(k, l, q->ticket, LEASE_AGAIN,
                        membership_view_find(v, q->id, q->incarnation) ? ENTERED : LEASE_CALL);
    else
        ticket_keys_set(k, l, q->ticket, LEASE_TURN, LEASE_CALL);
}

/* The first ticket behind ours without a request: its owner may be about to write it. */
static int64_t first_missing(const struct membership_list *r)
{
    const struct requests *q = &r->requests;
    int64_t t = r->lock.lease.ticket + 1;

    for (t = t > q->from ? t : q->from; t <= q->to && is_known(q, t);)
        t++;
    return t <= q->to ? t : q->to + 1;
}

void requests_finish(struct membership_list *r, const struct membership_view *v, bool joins,
                     uint64_t deadline_ns)
{
    struct requests *q = &r->requests;
    struct lease *l = &r->lock.lease;
    int64_t head = first_missing(r), unserved = 0;
    struct ticket_keys answer = { .n = 0 }, wants = { .n = 0 };
    char text[24];

    if (!q->from)
        return;
    if (ticket_keys_init(&answer, q->n, NULL) == TENREC_OK &&
        ticket_keys_init(&wants, q->n, NULL) == TENREC_OK) {
        for (size_t i = 0; i < q->n; i++) {
            if (!joins && q->list[i].kind == REQUEST_JOIN) {
                unserved = unserved ? unserved : q->list[i].ticket;
                continue;
            }
            add_answer(&answer, l, &q->list[i], v);
            ticket_keys_add(&wants, l, q->list[i].ticket, LEASE_WANTS);
        }
        l->next = unserved ? unserved : head;
        head = unserved && unserved < head ? unserved : head;
        snprintf(text, sizeof text, "%" PRId64, head);
        store_set_all(r->store, answer.key, answer.value, answer.n, deadline_ns, NULL);
        store_set(r->store, HEAD, text, strlen(text), deadline_ns, NULL);
        store_remove_all(r->store, wants.key, wants.n, deadline_ns, NULL, NULL);
    }
    ticket_keys_finish(&wants);
    ticket_keys_finish(&answer);
}
