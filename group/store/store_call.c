/* SPDX-License-Identifier: Apache-2.0 */
#include "group/store/store_call.h"

#include "security/proof/security.h"

#include <string.h>
#include <sys/socket.h>
#include <utlist.h>

#define MAX_IDLE 8
#define BATCH 256 /* requests that are sent before answers are read */
#define GROUP 32  /* keys of one CHECK */

void store_client_init(struct store_client *s, struct security *security)
{
    *s = (struct store_client){ .dial.security = security };
    if (security)
        s->security = security_share(security);
    pthread_mutex_init(&s->lock, NULL);
}

tenrec_status store_client_open(struct store_client *s, const char *host, uint16_t port,
                                uint64_t deadline_ns, tenrec_error *err)
{
    tenrec_status st = store_dial_open(&s->dial, host, port, deadline_ns, &s->idle, err);

    s->n_idle = st == TENREC_OK;
    return st;
}

void store_client_rest(struct store_client *s)
{
    struct store_conn *list, *c;

    pthread_mutex_lock(&s->lock);
    list = s->idle;
    s->idle = NULL;
    s->n_idle = 0;
    pthread_mutex_unlock(&s->lock);
    while ((c = list)) {
        list = c->next;
        store_conn_drop(c);
    }
}

void store_client_finish(struct store_client *s)
{
    store_client_rest(s);
    pthread_mutex_destroy(&s->lock);
    security_drop(s->security);
}

/* Each thread that waits for an answer then reads the end of its connection. */
void store_client_cut(struct store_client *s)
{
    pthread_mutex_lock(&s->lock);
    for (struct store_call *c = s->busy; c; c = c->next)
        if (c->conn)
            shutdown(c->conn->fd, SHUT_RDWR);
    pthread_mutex_unlock(&s->lock);
}

static struct store_conn *client_take_idle(struct store_client *s)
{
    struct store_conn *c;

    for (;;) {
        pthread_mutex_lock(&s->lock);
        if ((c = s->idle)) {
            s->idle = c->next;
            s->n_idle--;
        }
        pthread_mutex_unlock(&s->lock);
        if (!c || store_conn_quiet(c))
            return c;
        store_conn_drop(c); /* the server has closed it */
    }
}

tenrec_status store_call_begin(struct store_call *c, struct store_client *s, uint64_t deadline_ns,
                               tenrec_error *err)
{
    bool fresh;
    tenrec_status st = TENREC_OK;

    *c = (struct store_call){ .client = s, .deadline_ns = store_answer_ns(deadline_ns) };
    c->conn = client_take_idle(s);
    fresh = !c->conn;
    if (fresh)
        st = store_dial_again(&s->dial, c->deadline_ns, &c->conn, err);
    pthread_mutex_lock(&s->lock);
    LL_PREPEND(s->busy, c);
    pthread_mutex_unlock(&s->lock);
    /* Listed before the proof or the handshake, which waits for the server: store_client_cut must
     * end it. */
    if (fresh && st == TENREC_OK)
        st = store_dial_greet(&s->dial, c->conn, c->deadline_ns, err);
    return st;
}

void store_call_add(struct store_call *c, enum store_op op, const char *key)
{
    bytes_add_u8(&c->request, (uint8_t)store_op_number(c->client->dial.dialect, op));
    if (key)
        bytes_add_text(&c->request, key);
}

tenrec_status store_call_send(struct store_call *c, tenrec_error *err)
{
    tenrec_status st = store_conn_send(c->conn, &c->request, c->deadline_ns, err);

    bytes_drop_front(&c->request, c->request.len);
    return st;
}

tenrec_status store_call_end(struct store_call *c, tenrec_status st)
{
    struct store_client *s = c->client;

    bytes_free(&c->request);
    pthread_mutex_lock(&s->lock);
    LL_DELETE(s->busy, c);
    if (st == TENREC_OK && s->n_idle < MAX_IDLE) {
        LL_PREPEND(s->idle, c->conn);
        s->n_idle++;
        c->conn = NULL;
    }
    pthread_mutex_unlock(&s->lock);
    store_conn_drop(c->conn);
    return st;
}

tenrec_status store_call_number(struct store_call *c, tenrec_status st, int64_t *ret,
                                tenrec_error *err)
{
    if (st == TENREC_OK)
        st = store_call_send(c, err);
    if (st == TENREC_OK)
        st = store_conn_read_i64(c->conn, ret, c->deadline_ns, err);
    return store_call_end(c, st);
}

tenrec_status store_call_value(struct store_call *c, tenrec_status st, struct store_value *ret,
                               tenrec_error *err)
{
    if (st == TENREC_OK)
        st = store_call_send(c, err);
    if (st == TENREC_OK)
        st = store_conn_read_blob(c->conn, &ret->data, &ret->len, c->deadline_ns, err);
    return store_call_end(c, st);
}

static void call_add_keys(struct store_call *c, enum store_op op, const char *const *keys, size_t n)
{
    store_call_add(c, op, NULL);
    bytes_add_u64(&c->request, n);
    for (size_t i = 0; i < n; i++)
        bytes_add_text(&c->request, keys[i]);
}

/* The keys of one CHECK. */
struct checked {
    size_t first, n;
};

/* Sends a CHECK for each group, and gives the keys of a group whose answer is known to ret_missing:
 * all exist, or the only one is missing. Keeps the groups with several keys of which one is
 * missing. */
static tenrec_status call_check_groups(struct store_call *c, const char *const *keys,
                                       struct checked *group, size_t *n_groups, bool *ret_missing,
                                       tenrec_error *err)
{
    tenrec_status st;
    size_t kept = 0;

    for (size_t i = 0; i < *n_groups; i++)
        call_add_keys(c, STORE_OP_CHECK, keys + group[i].first, group[i].n);
    st = store_call_send(c, err);
    for (size_t i = 0; i < *n_groups && st == TENREC_OK; i++) {
        uint8_t missing = 0;
        st = store_conn_read_u8(c->conn, &missing, c->deadline_ns, err);
        if (st != TENREC_OK)
            break; /* the caller may know of an earlier answer */
        if (missing && group[i].n > 1)
            group[kept++] = group[i];
        else
            memset(ret_missing + group[i].first, missing != 0, group[i].n);
    }
    *n_groups = kept;
    return st;
}

/* The next groups of `size` keys each, at most BATCH. Returns how many. */
static size_t call_group_keys(struct checked *group, size_t *at, size_t end, size_t size)
{
    size_t n = 0;

    for (; n < BATCH && *at < end; n++, *at += group[n - 1].n)
        group[n] = (struct checked){ *at, end - *at < size ? end - *at : size };
    return n;
}

/* Checks the keys of a group one by one. */
static tenrec_status call_check_each(struct store_call *c, const char *const *keys,
                                     const struct checked *group, bool *ret_missing,
                                     tenrec_error *err)
{
    struct checked one[GROUP];
    size_t at = group->first, n = call_group_keys(one, &at, group->first + group->n, 1);

    return call_check_groups(c, keys, one, &n, ret_missing, err);
}

tenrec_status store_call_check(struct store_call *c, const char *const *keys, size_t n,
                               bool *ret_missing, size_t *ret_count, tenrec_error *err)
{
    struct checked group[BATCH];
    tenrec_status st = TENREC_OK;

    *ret_count = 0;
    for (size_t at = 0; st == TENREC_OK && at < n;) {
        size_t n_groups = call_group_keys(group, &at, n, GROUP);
        st = call_check_groups(c, keys, group, &n_groups, ret_missing, err);
        for (size_t i = 0; i < n_groups && st == TENREC_OK; i++)
            st = call_check_each(c, keys, &group[i], ret_missing, err);
    }
    for (size_t i = 0; i < n && st == TENREC_OK; i++)
        *ret_count += ret_missing[i];
    return st;
}

static tenrec_status call_read_values(struct store_call *c, size_t n, struct store_value *ret,
                                      tenrec_error *err)
{
    tenrec_status st = store_call_send(c, err);

    for (size_t i = 0; st == TENREC_OK && i < n; i++)
        st = store_conn_read_blob(c->conn, &ret[i].data, &ret[i].len, c->deadline_ns, err);
    return st;
}

tenrec_status store_call_values(struct store_call *c, const char *const *keys, size_t n,
                                struct store_value *ret, tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    if (n > 1 && c->client->dial.dialect == STORE_DIALECT_2_2) {
        call_add_keys(c, STORE_OP_MULTI_GET, keys, n);
        return call_read_values(c, n, ret, err);
    }
    for (size_t at = 0; st == TENREC_OK && at < n; at += BATCH) {
        const size_t some = n - at < BATCH ? n - at : BATCH;
        for (size_t i = at; i < at + some; i++)
            store_call_add(c, STORE_OP_GET, keys[i]);
        st = call_read_values(c, some, ret + at, err);
    }
    return st;
}

tenrec_status store_call_wait(struct store_call *c, const char *const *keys, size_t n,
                              uint64_t deadline_ns, tenrec_error *err)
{
    uint8_t answer = 0;
    tenrec_status st;

    call_add_keys(c, STORE_OP_WAIT, keys, n);
    st = store_call_send(c, err);
    if (st == TENREC_OK)
        st = store_conn_read_u8(c->conn, &answer, deadline_ns, err);
    if (st == TENREC_OK && answer != 0)
        st = tenrec_fail(err, TENREC_EPROTOCOL, "the server answered a wait by %u, expected 0",
                         answer);
    return st;
}

/* Cancels the WAIT. The answer of the WAIT may be on its way, and arrives first then. */
static tenrec_status call_cancel_wait(struct store_call *c, tenrec_error *err)
{
    uint8_t answer = 0;
    tenrec_status st;

    store_call_add(c, STORE_OP_CANCEL_WAIT, NULL);
    st = store_call_send(c, err);
    if (st == TENREC_OK)
        st = store_conn_read_u8(c->conn, &answer, c->deadline_ns, err);
    if (st == TENREC_OK && answer == 0)
        st = store_conn_read_u8(c->conn, &answer, c->deadline_ns, err);
    if (st == TENREC_OK && answer != 1)
        st = tenrec_fail(err, TENREC_EPROTOCOL,
                         "the server answered the cancel of a wait by %u, expected 1", answer);
    return st;
}

tenrec_status store_call_round(struct store_call *c, const char *const *keys, size_t n,
                               uint64_t until_ns, bool *ret_missing, size_t *ret_count,
                               tenrec_error *err)
{
    tenrec_status st = store_call_wait(c, keys, n, until_ns, err);

    if (st == TENREC_OK)
        *ret_count = 0;
    if (st != TENREC_ETIMEDOUT)
        return st;
    st = call_cancel_wait(c, err);
    return st == TENREC_OK ? store_call_check(c, keys, n, ret_missing, ret_count, err) : st;
}
