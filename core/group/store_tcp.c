/* SPDX-License-Identifier: Apache-2.0 */
/* store_tcp.c - the TCP store's client. A connection serves one call at a time, since a WAIT blocks
 * it; idle ones are kept for later calls. */
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "group/store.h"
#include "group/store_dial.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_IDLE 8
#define BATCH 256 /* requests that are sent before answers are read */

struct tcp_store {
    struct store_backend backend;
    struct store_dial dial;
    pthread_mutex_t lock; /* guards the fields below */
    struct store_conn *idle;
    size_t n_idle;
    struct call *busy; /* their connections are open until call_end */
};

/* One call: a connection that goes back to the others only when all went well. */
struct call {
    struct tcp_store *store;
    struct store_conn *conn;
    struct bytes request;
    uint64_t deadline_ns; /* for the answers */
    struct call *next;    /* of the busy ones; guarded by store->lock */
};

/* The same error with another code. */
static tenrec_status tcp_recode(tenrec_error *err, tenrec_status code)
{
    if (err)
        err->code = code;
    return code;
}

static void add_op(struct bytes *b, enum store_dialect d, enum store_op op)
{
    bytes_add_u8(b, (uint8_t)store_op_number(d, op));
}

static struct store_conn *take_idle(struct tcp_store *t)
{
    struct store_conn *c;

    for (;;) {
        pthread_mutex_lock(&t->lock);
        if ((c = t->idle)) {
            t->idle = c->next;
            t->n_idle--;
        }
        pthread_mutex_unlock(&t->lock);
        if (!c || store_conn_quiet(c))
            return c;
        store_conn_drop(c); /* the server has closed it */
    }
}

static tenrec_status call_begin(struct call *c, struct store_backend *b, uint64_t deadline_ns,
                                tenrec_error *err)
{
    struct tcp_store *t = (struct tcp_store *)b;
    tenrec_status st = TENREC_OK;

    *c = (struct call){ .store = t, .deadline_ns = store_answer_ns(deadline_ns) };
    if (!(c->conn = take_idle(t)))
        st = store_dial_again(&t->dial, c->deadline_ns, &c->conn, err);
    pthread_mutex_lock(&t->lock);
    c->next = t->busy;
    t->busy = c;
    pthread_mutex_unlock(&t->lock);
    return st;
}

/* Lock held. */
static void call_remove(struct call *c)
{
    struct call **at = &c->store->busy;

    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
}

/* A thread that waits for an answer reads the end of its connection. */
static void tcp_cut(struct store_backend *b)
{
    struct tcp_store *t = (struct tcp_store *)b;

    pthread_mutex_lock(&t->lock);
    for (struct call *c = t->busy; c; c = c->next)
        if (c->conn)
            shutdown(c->conn->fd, SHUT_RDWR);
    pthread_mutex_unlock(&t->lock);
}

static void add_request(struct call *c, enum store_op op, const char *key)
{
    add_op(&c->request, c->store->dial.dialect, op);
    if (key)
        bytes_add_text(&c->request, key);
}

static tenrec_status call_send(struct call *c, tenrec_error *err)
{
    tenrec_status st = store_conn_send(c->conn, &c->request, c->deadline_ns, err);

    bytes_drop_front(&c->request, c->request.len);
    return st;
}

static tenrec_status call_end(struct call *c, tenrec_status st, tenrec_error *err)
{
    struct tcp_store *t = c->store;

    bytes_free(&c->request);
    pthread_mutex_lock(&t->lock);
    call_remove(c);
    if (st == TENREC_OK && t->n_idle < MAX_IDLE) {
        c->conn->next = t->idle;
        t->idle = c->conn;
        t->n_idle++;
        c->conn = NULL;
    }
    pthread_mutex_unlock(&t->lock);
    if (st != TENREC_OK)
        tenrec_error_prefix(err, "%s", t->backend.name);
    store_conn_drop(c->conn);
    return st;
}

/* SET has no answer, so NUM_KEYS is asked behind it: the value is visible to every other connection
 * when this returns. */
static tenrec_status tcp_set(struct store_backend *b, const char *key, const void *data, size_t len,
                             uint64_t deadline_ns, tenrec_error *err)
{
    struct call c;
    int64_t n;
    tenrec_status st = call_begin(&c, b, deadline_ns, err);

    add_request(&c, STORE_OP_SET, key);
    bytes_add_blob(&c.request, data, len);
    add_request(&c, STORE_OP_NUM_KEYS, NULL);
    if (st == TENREC_OK)
        st = call_send(&c, err);
    if (st == TENREC_OK)
        st = store_conn_read_i64(c.conn, &n, c.deadline_ns, err);
    return call_end(&c, st, err);
}

/* Reads one value without waiting for it. */
static tenrec_status read_value(struct store_backend *b, const char *key, uint64_t deadline_ns,
                                struct store_value *ret, tenrec_error *err)
{
    struct call c;
    tenrec_status st = call_begin(&c, b, deadline_ns, err);

    add_request(&c, STORE_OP_GET, key);
    if (st == TENREC_OK)
        st = call_send(&c, err);
    if (st == TENREC_OK)
        st = store_conn_read_blob(c.conn, &ret->data, &ret->len, c.deadline_ns, err);
    return call_end(&c, st, err);
}

/* A server that cannot add only closes the connection: checks whether the value is the reason. */
static tenrec_status explain_add(struct store_backend *b, const char *key, uint64_t deadline_ns,
                                 tenrec_error *err)
{
    struct store_value value = { 0 };
    tenrec_status st = TENREC_EPEER_LOST;
    char *end;

    if (read_value(b, key, deadline_ns, &value, NULL) != TENREC_OK)
        return st;
    errno = 0;
    (void)strtoll(value.data, &end, 10);
    if (value.len && (*end || errno == ERANGE || end == (char *)value.data))
        st = tenrec_fail(err, TENREC_EINVAL, "%s cannot add to key \"%s\": \"%.32s\" is no number",
                         b->name, key, (char *)value.data);
    free(value.data);
    return st;
}

static tenrec_status tcp_add(struct store_backend *b, const char *key, int64_t delta,
                             uint64_t deadline_ns, int64_t *ret, tenrec_error *err)
{
    struct call c;
    tenrec_status st = call_begin(&c, b, deadline_ns, err);

    add_request(&c, STORE_OP_ADD, key);
    bytes_add_u64(&c.request, (uint64_t)delta);
    if (st == TENREC_OK)
        st = call_send(&c, err);
    if (st == TENREC_OK)
        st = store_conn_read_i64(c.conn, ret, c.deadline_ns, err);
    st = call_end(&c, st, err);
    return st == TENREC_EPEER_LOST ? explain_add(b, key, deadline_ns, err) : st;
}

static tenrec_status tcp_compare_set(struct store_backend *b, const char *key,
                                     const struct store_value *expected,
                                     const struct store_value *desired, uint64_t deadline_ns,
                                     struct store_value *ret, tenrec_error *err)
{
    struct call c;
    tenrec_status st = call_begin(&c, b, deadline_ns, err);

    add_request(&c, STORE_OP_COMPARE_SET, key);
    bytes_add_blob(&c.request, expected->data, expected->len);
    bytes_add_blob(&c.request, desired->data, desired->len);
    if (st == TENREC_OK)
        st = call_send(&c, err);
    if (st == TENREC_OK)
        st = store_conn_read_blob(c.conn, &ret->data, &ret->len, c.deadline_ns, err);
    return call_end(&c, st, err);
}

/* One CHECK for each key, all under way at once. */
static tenrec_status call_check(struct call *c, const char *const *keys, size_t n,
                                bool *ret_missing, size_t *ret_count, tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    *ret_count = 0;
    for (size_t at = 0; st == TENREC_OK && at < n; at += BATCH) {
        size_t end = n - at < BATCH ? n : at + BATCH;
        uint8_t missing = 0;
        for (size_t i = at; i < end; i++) {
            add_request(c, STORE_OP_CHECK, NULL);
            bytes_add_u64(&c->request, 1);
            bytes_add_text(&c->request, keys[i]);
        }
        st = call_send(c, err);
        for (size_t i = at; st == TENREC_OK && i < end; i++) {
            st = store_conn_read_u8(c->conn, &missing, c->deadline_ns, err);
            if (st != TENREC_OK)
                break; /* the caller may know of an earlier answer */
            ret_missing[i] = missing != 0;
            *ret_count += ret_missing[i];
        }
    }
    return st;
}

static tenrec_status count_missing(struct store_backend *b, const char *const *keys, size_t n,
                                   uint64_t deadline_ns, bool *ret_missing, size_t *ret_count,
                                   tenrec_error *err)
{
    struct call c;
    tenrec_status st = call_begin(&c, b, deadline_ns, err);

    if (st == TENREC_OK)
        st = call_check(&c, keys, n, ret_missing, ret_count, err);
    return call_end(&c, st, err);
}

static tenrec_status tcp_check(struct store_backend *b, const char *const *keys, size_t n,
                               uint64_t deadline_ns, bool *ret_missing, tenrec_error *err)
{
    size_t count;

    return count_missing(b, keys, n, deadline_ns, ret_missing, &count, err);
}

static tenrec_status call_wait(struct call *c, const char *const *keys, size_t n,
                               uint64_t deadline_ns, tenrec_error *err)
{
    uint8_t answer = 0;
    tenrec_status st;

    add_request(c, STORE_OP_WAIT, NULL);
    bytes_add_u64(&c->request, n);
    for (size_t i = 0; i < n; i++)
        bytes_add_text(&c->request, keys[i]);
    st = call_send(c, err);
    if (st == TENREC_OK)
        st = store_conn_read_u8(c->conn, &answer, deadline_ns, err);
    if (st == TENREC_OK && answer != 0)
        st = tenrec_fail(err, TENREC_EPROTOCOL, "it answered a wait by %u, expected 0", answer);
    return st;
}

/* Cancels the WAIT. Its answer may be on its way, and comes first then. */
static tenrec_status call_cancel_wait(struct call *c, tenrec_error *err)
{
    uint8_t answer = 0;
    tenrec_status st;

    add_request(c, STORE_OP_CANCEL_WAIT, NULL);
    st = call_send(c, err);
    if (st == TENREC_OK)
        st = store_conn_read_u8(c->conn, &answer, c->deadline_ns, err);
    if (st == TENREC_OK && answer == 0)
        st = store_conn_read_u8(c->conn, &answer, c->deadline_ns, err);
    if (st == TENREC_OK && answer != 1)
        st = tenrec_fail(err, TENREC_EPROTOCOL, "it answered the end of a wait by %u, expected 1",
                         answer);
    return st;
}

/* Waits until `until_ns`, cancels the WAIT and checks which keys are missing. */
static tenrec_status call_round(struct call *c, const char *const *keys, size_t n,
                                uint64_t until_ns, bool *ret_missing, size_t *ret_count,
                                tenrec_error *err)
{
    tenrec_status st = call_wait(c, keys, n, until_ns, err);

    if (st == TENREC_OK)
        *ret_count = 0;
    if (st != TENREC_ETIMEDOUT)
        return st;
    st = call_cancel_wait(c, err);
    return st == TENREC_OK ? call_check(c, keys, n, ret_missing, ret_count, err) : st;
}

/* On one connection throughout: a server that is about to go takes no other. */
static tenrec_status tcp_wait_round(struct store_backend *b, const char *const *keys, size_t n,
                                    uint64_t until_ns, uint64_t deadline_ns, bool *ret_missing,
                                    tenrec_error *err)
{
    size_t count = 0;
    struct call c;
    tenrec_status st;

    if (((struct tcp_store *)b)->dial.dialect != STORE_DIALECT_2_2)
        return store_wait_then_check(b, keys, n, until_ns, deadline_ns, ret_missing, err);
    st = call_begin(&c, b, deadline_ns, err);
    if (st == TENREC_OK)
        st = call_check(&c, keys, n, ret_missing, &count, err);
    if (st == TENREC_OK && count > 0)
        st = call_round(&c, keys, n, until_ns, ret_missing, &count, err);
    st = call_end(&c, st, err);
    if (st == TENREC_ETIMEDOUT)
        return tcp_recode(err, TENREC_EPEER_LOST);
    return st == TENREC_OK && count > 0 ? tenrec_fail(err, TENREC_ETIMEDOUT, "%s", "") : st;
}

/* Sends CHECK for each key, then WAIT when one is missing. *ret_alive: the CHECKs were answered,
 * and ret_missing is valid. */
static tenrec_status wait_keys(struct store_backend *b, const char *const *keys, size_t n,
                               uint64_t deadline_ns, bool *ret_missing, bool *ret_alive,
                               tenrec_error *err)
{
    size_t count = 0;
    struct call c;
    tenrec_status st = call_begin(&c, b, deadline_ns, err);

    if (st == TENREC_OK)
        st = call_check(&c, keys, n, ret_missing, &count, err);
    *ret_alive = st == TENREC_OK;
    if (st == TENREC_OK && count > 0)
        st = call_wait(&c, keys, n, deadline_ns, err);
    return call_end(&c, st, err);
}

static tenrec_status read_values(struct store_backend *b, const char *const *keys, size_t n,
                                 uint64_t deadline_ns, struct store_value *ret, tenrec_error *err)
{
    struct call c;
    tenrec_status st = call_begin(&c, b, deadline_ns, err);

    for (size_t at = 0; st == TENREC_OK && at < n; at += BATCH) {
        size_t end = n - at < BATCH ? n : at + BATCH;
        for (size_t i = at; i < end; i++)
            add_request(&c, STORE_OP_GET, keys[i]);
        st = call_send(&c, err);
        for (size_t i = at; st == TENREC_OK && i < end; i++)
            st = store_conn_read_blob(c.conn, &ret[i].data, &ret[i].len, c.deadline_ns, err);
    }
    return call_end(&c, st, err);
}

/* The deadline of a wait has come: *ret_count of the keys are missing, and ret_missing
 * says which; it says so already when the server was `alive` when the wait began. */
static tenrec_status name_missing(struct store_backend *b, const char *const *keys, size_t n,
                                  uint64_t deadline_ns, bool alive, bool *ret_missing,
                                  size_t *ret_count, tenrec_error *err)
{
    tenrec_error why = { 0 };
    tenrec_status st = count_missing(b, keys, n, deadline_ns, ret_missing, ret_count, &why);

    if (st == TENREC_OK)
        return st;
    if (st == TENREC_ETIMEDOUT && alive) {
        *ret_count = n;
        if (err)
            snprintf(err->text, sizeof err->text, "the store did not answer whether it came since");
        return TENREC_OK;
    }
    tenrec_error_prefix(&why, "waited for key \"%s\"", keys[0]);
    if (err)
        *err = why;
    return st;
}

/* A server answers a GET of a missing key with an empty value, so a key that was removed after
 * the wait shows as one. */
static tenrec_status values_are_gone(struct store_backend *b, const char *const *keys, size_t n,
                                     uint64_t deadline_ns, struct store_value *values,
                                     bool *ret_missing, bool *ret, tenrec_error *err)
{
    size_t count = 0, empty = 0;
    tenrec_status st = TENREC_OK;

    *ret = false;
    for (size_t i = 0; i < n; i++)
        empty += values[i].len == 0;
    if (empty > 0)
        st = count_missing(b, keys, n, deadline_ns, ret_missing, &count, err);
    for (size_t i = 0; i < n && count > 0; i++)
        *ret = *ret || (values[i].len == 0 && ret_missing[i]);
    for (size_t i = 0; i < n && *ret; i++) {
        free(values[i].data);
        values[i] = (struct store_value){ 0 };
    }
    return st;
}

static tenrec_status get_once(struct store_backend *b, const char *const *keys, size_t n,
                              uint64_t deadline_ns, struct store_value *ret, bool *ret_missing,
                              tenrec_error *err)
{
    tenrec_status st = TENREC_ETIMEDOUT;
    bool alive = false;
    size_t count = 0;

    if (!clock_passed(deadline_ns))
        st = wait_keys(b, keys, n, deadline_ns, ret_missing, &alive, err);
    if (st == TENREC_ETIMEDOUT) {
        if (err)
            *err = (tenrec_error){ 0 };
        st = name_missing(b, keys, n, deadline_ns, alive, ret_missing, &count, err);
        if (st == TENREC_OK && count > 0)
            return TENREC_ETIMEDOUT;
    }
    if (st == TENREC_OK && ret)
        st = read_values(b, keys, n, deadline_ns, ret, err);
    /* A silent store is lost, and not merely without the key. */
    return st == TENREC_ETIMEDOUT ? tcp_recode(err, TENREC_EPEER_LOST) : st;
}

static tenrec_status tcp_get(struct store_backend *b, const char *const *keys, size_t n,
                             uint64_t deadline_ns, struct store_value *ret, bool *ret_missing,
                             tenrec_error *err)
{
    bool gone = false;
    tenrec_status st;

    do {
        st = get_once(b, keys, n, deadline_ns, ret, ret_missing, err);
        if (st != TENREC_OK || !ret)
            return st;
        st = values_are_gone(b, keys, n, deadline_ns, ret, ret_missing, &gone, err);
    } while (st == TENREC_OK && gone);
    return st == TENREC_ETIMEDOUT ? tcp_recode(err, TENREC_EPEER_LOST) : st;
}

static tenrec_status tcp_delete(struct store_backend *b, const char *const *keys, size_t n,
                                uint64_t deadline_ns, size_t *ret, tenrec_error *err)
{
    struct call c;
    int64_t gone = 0;
    tenrec_status st = call_begin(&c, b, deadline_ns, err);

    *ret = 0;
    for (size_t at = 0; st == TENREC_OK && at < n; at += BATCH) {
        size_t end = n - at < BATCH ? n : at + BATCH;
        for (size_t i = at; i < end; i++)
            add_request(&c, STORE_OP_DELETE_KEY, keys[i]);
        st = call_send(&c, err);
        for (size_t i = at; st == TENREC_OK && i < end; i++) {
            st = store_conn_read_i64(c.conn, &gone, c.deadline_ns, err);
            *ret += gone > 0;
        }
    }
    return call_end(&c, st, err);
}

static tenrec_status tcp_num_keys(struct store_backend *b, uint64_t deadline_ns, int64_t *ret,
                                  tenrec_error *err)
{
    struct call c;
    tenrec_status st = call_begin(&c, b, deadline_ns, err);

    add_request(&c, STORE_OP_NUM_KEYS, NULL);
    if (st == TENREC_OK)
        st = call_send(&c, err);
    if (st == TENREC_OK)
        st = store_conn_read_i64(c.conn, ret, c.deadline_ns, err);
    return call_end(&c, st, err);
}

static void tcp_destroy(struct store_backend *b, uint64_t deadline_ns)
{
    struct tcp_store *t = (struct tcp_store *)b;
    struct store_conn *c;

    (void)deadline_ns;
    while ((c = t->idle)) {
        t->idle = c->next;
        store_conn_drop(c);
    }
    pthread_mutex_destroy(&t->lock);
    free(t);
}

static const struct store_ops tcp_ops = {
    .set = tcp_set,
    .add = tcp_add,
    .compare_set = tcp_compare_set,
    .get = tcp_get,
    .wait_round = tcp_wait_round,
    .check = tcp_check,
    .delete_keys = tcp_delete,
    .num_keys = tcp_num_keys,
    .cut = tcp_cut,
    .destroy = tcp_destroy,
};

tenrec_status store_tcp_open(const char *host, uint16_t port, uint64_t deadline_ns,
                             struct tenrec_store **ret, tenrec_error *err)
{
    const uint64_t since_ns = clock_now_ns();
    struct tcp_store *t = memory_new(1, sizeof *t);
    tenrec_status st;

    if (!t)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a store");
    t->backend.ops = &tcp_ops;
    atomic_init(&t->backend.refs, 1);
    pthread_mutex_init(&t->lock, NULL);
    snprintf(t->backend.name, sizeof t->backend.name,
             strchr(host, ':') ? "tcp store [%s]:%u" : "tcp store %s:%u", host, port);
    st = store_dial_open(&t->dial, host, port, deadline_ns, &t->idle, err);
    t->n_idle = st == TENREC_OK;
    if (st == TENREC_OK) {
        log_line(TENREC_LOG_DEBUG, "store", "%s speaks the numbers of torch %s", t->backend.name,
                 t->dial.dialect == STORE_DIALECT_2_2 ? "2.2" : "1.13");
        return store_handle_new(&t->backend, "/", ret, err);
    }
    tenrec_error_prefix(err, "cannot reach %s within %llu ms", t->backend.name,
                        (unsigned long long)((clock_now_ns() - since_ns) / 1000000u));
    tcp_destroy(&t->backend, deadline_ns);
    return st;
}
