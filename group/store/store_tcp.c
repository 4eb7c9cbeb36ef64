/* SPDX-License-Identifier: Apache-2.0 */
/* store_tcp.c - the TCP store's client. */
#include "core/base/clock.h"
#include "core/base/memory.h"
#include "core/base/resolve.h"
#include "group/store/store.h"
#include "group/store/store_call.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 256 /* requests that are sent before answers are read */

enum { MOMENT_MS = 50 };

struct tcp_store {
    char name[300];
    struct store_client client;
    /* A mark of the keys that the last check, or round of a wait, has found: the reading that
     * follows it does not ask again. 0: none. A wrong one costs a request. */
    _Atomic uint64_t found;
};

static uint64_t keys_mark(const char *const *keys, size_t n)
{
    uint64_t mark = n;

    for (const char *c = keys[0]; *c; c++)
        mark = (mark ^ (uint8_t)*c) * UINT64_C(1099511628211); /* FNV-1a */
    return mark ? mark : 1;
}

static struct tcp_store *tcp_of(struct tenrec_plugin_store *s)
{
    return s->impl;
}

static struct store_client *client_of(struct tenrec_plugin_store *s)
{
    return &((struct tcp_store *)s->impl)->client;
}

/* The same error with another code. */
static tenrec_status tcp_recode(tenrec_error *err, tenrec_status code)
{
    if (err)
        err->code = code;
    return code;
}

/* SET has no answer, so a NUM_KEYS follows: the value is visible to every other connection when
 * this returns. */
static tenrec_status tcp_set(struct tenrec_plugin_store *s, const char *key, const void *data,
                             size_t len, uint64_t deadline_ns, tenrec_error *err)
{
    struct store_call c;
    int64_t n;
    tenrec_status st = store_call_begin(&c, client_of(s), deadline_ns, err);

    store_call_add(&c, STORE_OP_SET, key);
    bytes_add_blob(&c.request, data, len);
    store_call_add(&c, STORE_OP_NUM_KEYS, NULL);
    return store_call_number(&c, st, &n, err);
}

static tenrec_status tcp_set_all(struct tenrec_plugin_store *s,
                                 const struct tenrec_store_item *item, uint32_t n,
                                 uint64_t deadline_ns, tenrec_error *err)
{
    struct store_call c;
    int64_t n_keys;
    tenrec_status st = store_call_begin(&c, client_of(s), deadline_ns, err);

    for (uint32_t i = 0; i < n && st == TENREC_OK; i++) {
        store_call_add(&c, STORE_OP_SET, item[i].key);
        bytes_add_blob(&c.request, item[i].data, item[i].len);
        if (i % BATCH == BATCH - 1)
            st = store_call_send(&c, err);
    }
    store_call_add(&c, STORE_OP_NUM_KEYS, NULL);
    return store_call_number(&c, st, &n_keys, err);
}

/* Reads one value without waiting for it. */
static tenrec_status read_value(struct tenrec_plugin_store *s, const char *key,
                                uint64_t deadline_ns, struct store_value *ret, tenrec_error *err)
{
    struct store_call c;
    tenrec_status st = store_call_begin(&c, client_of(s), deadline_ns, err);

    store_call_add(&c, STORE_OP_GET, key);
    return store_call_value(&c, st, ret, err);
}

/* A server that cannot add only closes the connection: checks whether the value is the reason. */
static tenrec_status explain_add(struct tenrec_plugin_store *s, const char *key, int64_t delta,
                                 uint64_t deadline_ns, tenrec_error *err)
{
    struct store_value value = { 0 };
    tenrec_status st = TENREC_EPEER_LOST;
    long long number, sum;
    char *end;

    if (read_value(s, key, deadline_ns, &value, NULL) != TENREC_OK)
        return st;
    errno = 0;
    number = strtoll(value.data, &end, 10);
    if (value.len && (*end || errno == ERANGE || end == (char *)value.data))
        st = tenrec_fail(err, TENREC_EINVAL, "cannot add to key \"%s\": \"%.32s\" is no number",
                         key, (char *)value.data);
    else if (__builtin_add_overflow(number, delta, &sum))
        st = tenrec_fail(
            err, TENREC_EINVAL,
            "cannot add %lld to key \"%s\": %lld is its value, and the sum exceeds 64 bits",
            (long long)delta, key, number);
    free(value.data);
    return st;
}

static tenrec_status tcp_add(struct tenrec_plugin_store *s, const char *key, int64_t delta,
                             uint64_t deadline_ns, int64_t *ret, tenrec_error *err)
{
    struct store_call c;
    tenrec_status st = store_call_begin(&c, client_of(s), deadline_ns, err);

    store_call_add(&c, STORE_OP_ADD, key);
    bytes_add_u64(&c.request, (uint64_t)delta);
    st = store_call_number(&c, st, ret, err);
    return st == TENREC_EPEER_LOST ? explain_add(s, key, delta, deadline_ns, err) : st;
}

static tenrec_status tcp_compare_set(struct tenrec_plugin_store *s, const char *key,
                                     const void *expected, size_t expected_len, const void *desired,
                                     size_t desired_len, uint64_t deadline_ns,
                                     tenrec_store_value_fn *fn, void *arg, tenrec_error *err)
{
    struct store_value now = { 0 };
    struct store_call c;
    tenrec_status st = store_call_begin(&c, client_of(s), deadline_ns, err);

    store_call_add(&c, STORE_OP_COMPARE_SET, key);
    bytes_add_blob(&c.request, expected, expected_len);
    bytes_add_blob(&c.request, desired, desired_len);
    st = store_call_value(&c, st, &now, err);
    if (st == TENREC_OK)
        st = fn(arg, 0, now.data, now.len, err);
    free(now.data);
    return st;
}

static tenrec_status count_missing(struct tenrec_plugin_store *s, const char *const *keys, size_t n,
                                   uint64_t deadline_ns, bool *ret_missing, size_t *ret_count,
                                   tenrec_error *err)
{
    struct store_call c;
    tenrec_status st = store_call_begin(&c, client_of(s), deadline_ns, err);

    if (st == TENREC_OK)
        st = store_call_check(&c, keys, n, ret_missing, ret_count, err);
    return store_call_end(&c, st);
}

static tenrec_status tcp_check(struct tenrec_plugin_store *s, const char *const *keys, uint32_t n,
                               uint64_t deadline_ns, bool *ret_missing, tenrec_error *err)
{
    size_t count = 0;
    tenrec_status st = count_missing(s, keys, n, deadline_ns, ret_missing, &count, err);

    if (n > 0)
        atomic_store(&tcp_of(s)->found, st == TENREC_OK && count == 0 ? keys_mark(keys, n) : 0);
    return st;
}

/* On one connection throughout: a server that is shutting down accepts no other. */
static tenrec_status tcp_wait_round(struct tenrec_plugin_store *s, const char *const *keys,
                                    uint32_t n, uint64_t until_ns, uint64_t deadline_ns,
                                    bool *ret_missing, tenrec_error *err)
{
    size_t count = 0;
    struct store_call c;
    tenrec_status st;

    if (client_of(s)->dial.dialect != STORE_DIALECT_2_2)
        return store_wait_then_check(s, keys, n, until_ns, deadline_ns, ret_missing, err);
    st = store_call_begin(&c, client_of(s), deadline_ns, err);
    if (st == TENREC_OK)
        st = store_call_round(&c, keys, n, until_ns, ret_missing, &count, err);
    st = store_call_end(&c, st);
    atomic_store(&tcp_of(s)->found, st == TENREC_OK && count == 0 ? keys_mark(keys, n) : 0);
    if (st == TENREC_ETIMEDOUT)
        return tcp_recode(err, TENREC_EPEER_LOST);
    return st == TENREC_OK && count > 0 ? tenrec_fail(err, TENREC_ETIMEDOUT, "%s", "") : st;
}

/* WAIT for a moment, in which most keys are found, then CHECK, then WAIT for the rest. An older
 * server cannot cancel a WAIT: CHECK and WAIT. *ret_alive: CHECK was answered, and ret_missing is
 * valid. */
static tenrec_status wait_keys(struct tenrec_plugin_store *s, const char *const *keys, size_t n,
                               uint64_t deadline_ns, bool *ret_missing, bool *ret_alive,
                               tenrec_error *err)
{
    const uint64_t soon_ns = clock_deadline_ms(MOMENT_MS);
    size_t count = 0;
    struct store_call c;
    tenrec_status st = store_call_begin(&c, client_of(s), deadline_ns, err);

    if (st == TENREC_OK && client_of(s)->dial.dialect == STORE_DIALECT_2_2)
        st = store_call_round(&c, keys, n, soon_ns < deadline_ns ? soon_ns : deadline_ns,
                              ret_missing, &count, err);
    else if (st == TENREC_OK)
        st = store_call_check(&c, keys, n, ret_missing, &count, err);
    *ret_alive = st == TENREC_OK;
    if (st == TENREC_OK && count > 0)
        st = store_call_wait(&c, keys, n, deadline_ns, err);
    return store_call_end(&c, st);
}

static tenrec_status read_values(struct tenrec_plugin_store *s, const char *const *keys, size_t n,
                                 uint64_t deadline_ns, struct store_value *ret, tenrec_error *err)
{
    struct store_call c;
    tenrec_status st = store_call_begin(&c, client_of(s), deadline_ns, err);

    if (st == TENREC_OK)
        st = store_call_values(&c, keys, n, ret, err);
    return store_call_end(&c, st);
}

/* After a wait that reached its deadline: checks which keys are missing. Without an answer the
 * result of the check before the wait stays, if the server was `alive` then. */
static tenrec_status name_missing(struct tenrec_plugin_store *s, const char *const *keys, size_t n,
                                  uint64_t deadline_ns, bool alive, bool *ret_missing,
                                  size_t *ret_count, tenrec_error *err)
{
    tenrec_error why = { 0 };
    tenrec_status st = count_missing(s, keys, n, deadline_ns, ret_missing, ret_count, &why);

    if (st == TENREC_OK)
        return st;
    if (st == TENREC_ETIMEDOUT && alive) {
        *ret_count = n;
        if (err)
            snprintf(err->text, sizeof err->text,
                     "the store did not answer whether the key was set since");
        return TENREC_OK;
    }
    tenrec_error_prefix(&why, "waited for key \"%s\"", keys[0]);
    if (err)
        *err = why;
    return st;
}

/* A server answers a GET of a missing key with an empty value, so a key that was removed after
 * the wait shows as one. */
static tenrec_status values_are_gone(struct tenrec_plugin_store *s, const char *const *keys,
                                     size_t n, uint64_t deadline_ns, struct store_value *values,
                                     bool *ret_missing, bool *ret, tenrec_error *err)
{
    size_t count = 0, empty = 0;
    tenrec_status st = TENREC_OK;

    *ret = false;
    for (size_t i = 0; i < n; i++)
        empty += values[i].len == 0;
    if (empty > 0)
        st = count_missing(s, keys, n, deadline_ns, ret_missing, &count, err);
    for (size_t i = 0; i < n && count > 0; i++)
        *ret = *ret || (values[i].len == 0 && ret_missing[i]);
    for (size_t i = 0; i < n && *ret; i++) {
        free(values[i].data);
        values[i] = (struct store_value){ 0 };
    }
    return st;
}

static tenrec_status get_once(struct tenrec_plugin_store *s, const char *const *keys, size_t n,
                              uint64_t deadline_ns, struct store_value *ret, bool *ret_missing,
                              tenrec_error *err)
{
    tenrec_status st = TENREC_ETIMEDOUT;
    bool alive = false;
    size_t count = 0;

    if (ret && atomic_exchange(&tcp_of(s)->found, 0) == keys_mark(keys, n))
        st = TENREC_OK;
    else if (!clock_passed(deadline_ns))
        st = wait_keys(s, keys, n, deadline_ns, ret_missing, &alive, err);
    if (st == TENREC_ETIMEDOUT) {
        if (err)
            *err = (tenrec_error){ 0 };
        st = name_missing(s, keys, n, deadline_ns, alive, ret_missing, &count, err);
        if (st == TENREC_OK && count > 0)
            return TENREC_ETIMEDOUT;
    }
    if (st == TENREC_OK && ret)
        st = read_values(s, keys, n, deadline_ns, ret, err);
    /* A silent store is lost, not merely without the key. */
    return st == TENREC_ETIMEDOUT ? tcp_recode(err, TENREC_EPEER_LOST) : st;
}

static tenrec_status tcp_read(struct tenrec_plugin_store *s, const char *const *keys, uint32_t n,
                              uint64_t deadline_ns, struct store_value *values, bool *ret_missing,
                              tenrec_error *err)
{
    bool gone = false;
    tenrec_status st;

    do {
        st = get_once(s, keys, n, deadline_ns, values, ret_missing, err);
        if (st != TENREC_OK)
            return st;
        st = values_are_gone(s, keys, n, deadline_ns, values, ret_missing, &gone, err);
    } while (st == TENREC_OK && gone);
    return st == TENREC_ETIMEDOUT ? tcp_recode(err, TENREC_EPEER_LOST) : st;
}

static tenrec_status tcp_get(struct tenrec_plugin_store *s, const char *const *keys, uint32_t n,
                             uint64_t deadline_ns, tenrec_store_value_fn *fn, void *arg,
                             bool *ret_missing, tenrec_error *err)
{
    struct store_value *values;
    tenrec_status st;

    if (!fn)
        return get_once(s, keys, n, deadline_ns, NULL, ret_missing, err);
    if (!(values = memory_new(n, sizeof *values)))
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for %u values", n);
    st = tcp_read(s, keys, n, deadline_ns, values, ret_missing, err);
    for (uint32_t i = 0; st == TENREC_OK && i < n; i++)
        st = fn(arg, i, values[i].data, values[i].len, err);
    store_values_free(values, n);
    free(values);
    return st;
}

static tenrec_status tcp_remove(struct tenrec_plugin_store *s, const char *const *keys, uint32_t n,
                                uint64_t deadline_ns, uint32_t *ret, tenrec_error *err)
{
    struct store_call c;
    int64_t gone = 0;
    tenrec_status st = store_call_begin(&c, client_of(s), deadline_ns, err);

    *ret = 0;
    for (size_t at = 0; st == TENREC_OK && at < n; at += BATCH) {
        size_t end = n - at < BATCH ? n : at + BATCH;
        for (size_t i = at; i < end; i++)
            store_call_add(&c, STORE_OP_DELETE_KEY, keys[i]);
        st = store_call_send(&c, err);
        for (size_t i = at; st == TENREC_OK && i < end; i++) {
            st = store_conn_read_i64(c.conn, &gone, c.deadline_ns, err);
            *ret += gone > 0;
        }
    }
    return store_call_end(&c, st);
}

static tenrec_status tcp_num_keys(struct tenrec_plugin_store *s, uint64_t deadline_ns, int64_t *ret,
                                  tenrec_error *err)
{
    struct store_call c;
    tenrec_status st = store_call_begin(&c, client_of(s), deadline_ns, err);

    store_call_add(&c, STORE_OP_NUM_KEYS, NULL);
    return store_call_number(&c, st, ret, err);
}

static void tcp_cut(struct tenrec_plugin_store *s)
{
    store_client_cut(client_of(s));
}

static const char *tcp_name(struct tenrec_plugin_store *s)
{
    return ((const struct tcp_store *)s->impl)->name;
}

static void tcp_free(struct tcp_store *t)
{
    store_client_finish(&t->client);
    free(t);
}

static void tcp_close(struct tenrec_plugin_store *s, uint64_t deadline_ns)
{
    (void)deadline_ns;
    tcp_free(s->impl);
}

static const struct tenrec_store_ops tcp_ops = {
    .size = sizeof tcp_ops,
    .lacks = TENREC_STORE_LACKS_EXPIRY,
    .name = tcp_name,
    .set = tcp_set,
    .add = tcp_add,
    .compare_set = tcp_compare_set,
    .get = tcp_get,
    .check = tcp_check,
    .remove = tcp_remove,
    .num_keys = tcp_num_keys,
    .close = tcp_close,
    .wait_round = tcp_wait_round,
    .cut = tcp_cut,
    .set_all = tcp_set_all,
};

void store_tcp_rest(struct tenrec_plugin_store *s)
{
    if (s->ops == &tcp_ops)
        store_client_rest(client_of(s));
}

static tenrec_status tcp_connect(struct tcp_store *t, const struct tenrec_store_init *in,
                                 tenrec_error *err)
{
    const uint64_t since_ns = clock_now_ns();
    char host[256];
    uint16_t port;
    tenrec_status st = resolve_split(in->url, host, sizeof host, &port, err);

    if (st != TENREC_OK)
        return st;
    snprintf(t->name, sizeof t->name, strchr(host, ':') ? "tcp store [%s]:%u" : "tcp store %s:%u",
             host, port);
    st = store_client_open(&t->client, host, port, in->deadline_ns, err);
    /* The server answered, so the time does not matter. */
    if (st == TENREC_EPERM || st == TENREC_EPROTOCOL)
        tenrec_error_prefix(err, "%s", t->name);
    else if (st != TENREC_OK)
        tenrec_error_prefix(err, "cannot reach %s within %llu ms", t->name,
                            (unsigned long long)((clock_now_ns() - since_ns) / 1000000u));
    return st;
}

tenrec_status store_tcp_init(const struct tenrec_store_init *in, struct tenrec_plugin_store *s,
                             tenrec_error *err)
{
    const struct store_setup *setup = in->options;
    struct tcp_store *t = memory_new(1, sizeof *t);
    tenrec_status st;

    if (!t)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a store");
    store_client_init(&t->client, setup->security);
    if ((st = tcp_connect(t, in, err)) != TENREC_OK) {
        tcp_free(t);
        return st;
    }
    s->ops = &tcp_ops;
    s->impl = t;
    s->host->log(s, TENREC_LOG_DEBUG, "%s uses the request numbers of torch %s", t->name,
                 t->client.dial.dialect == STORE_DIALECT_2_2 ? "2.2" : "1.13");
    return TENREC_OK;
}
