/* SPDX-License-Identifier: Apache-2.0 */
/* store.c - the operations of a store: changes, and txns that read. */
#include "etcd.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define GAP_MS 50 /* before a broken watch begins again */

static const char *etcd_name(struct tenrec_plugin_store *self)
{
    const struct etcd_store *s = self->impl;

    return s->name;
}

static const char *etcd_address(struct tenrec_plugin_store *self)
{
    const struct etcd_store *s = self->impl;

    return *s->pool.address ? s->pool.address : NULL;
}

/* ---- changes ---- */

/* The bytes of a set or a compare_set. */
struct wanted {
    const void *expected, *desired;
    size_t expected_len, desired_len;
};

static enum change_step plan_set(struct change *c, struct txn *t, char *const *names,
                                 tenrec_error *err)
{
    const struct wanted *w = c->arg;

    (void)err;
    txn_put(t, names[0], w->desired, w->desired_len);
    return CHANGE_MAKE;
}

static tenrec_status etcd_set(struct tenrec_plugin_store *self, const char *key, const void *data,
                              size_t len, uint64_t deadline_ns, tenrec_error *err)
{
    const struct wanted w = { .desired = data, .desired_len = len };
    struct held held = { 0 };
    struct change c = { .keys = &key, .n = 1, .held = &held, .plan = plan_set, .arg = &w };
    bool made;
    tenrec_status st = change_run(self->impl, &c, deadline_ns, &made, err);

    change_finish(&c);
    return st;
}

/* A key that was not looked at is taken for missing: the answer tells what it holds. */
static enum change_step plan_add(struct change *c, struct txn *t, char *const *names,
                                 tenrec_error *err)
{
    const struct held *h = c->held;

    if (sum_add(c->keys[0], h->value, h->len, *(const int64_t *)c->arg, c->result, err) !=
        TENREC_OK)
        return CHANGE_FAIL;
    txn_compare_number(t, names[0], "MOD", "EQUAL", h->revision);
    txn_put(t, names[0], c->result, strlen(c->result));
    return CHANGE_MAKE;
}

static tenrec_status etcd_add(struct tenrec_plugin_store *self, const char *key, int64_t delta,
                              uint64_t deadline_ns, int64_t *ret, tenrec_error *err)
{
    struct held held = { 0 };
    struct change c = {
        .keys = &key, .n = 1, .held = &held, .wants_values = true, .plan = plan_add, .arg = &delta
    };
    bool made;
    tenrec_status st = change_run(self->impl, &c, deadline_ns, &made, err);

    change_finish(&c);
    if (st == TENREC_OK && !sum_read(c.result, strlen(c.result), ret))
        st = tenrec_fail(err, TENREC_EPROTOCOL, "the server keeps a malformed record");
    return st;
}

/* Compares the value, or its revision where several would do. */
static enum change_step plan_swap(struct change *c, struct txn *t, char *const *names,
                                  tenrec_error *err)
{
    const struct wanted *w = c->arg;
    const struct held *h = c->held;

    (void)err;
    if (h->known &&
        (h->value ? h->len != w->expected_len || memcmp(h->value, w->expected, h->len) != 0
                  : w->expected_len > 0))
        return CHANGE_LEAVE;
    if (w->expected_len)
        txn_compare_value(t, names[0], w->expected, w->expected_len);
    else
        txn_compare_number(t, names[0], "MOD", "EQUAL", h->revision);
    txn_put(t, names[0], w->desired, w->desired_len);
    return CHANGE_MAKE;
}

static tenrec_status etcd_compare_set(struct tenrec_plugin_store *self, const char *key,
                                      const void *expected, size_t expected_len,
                                      const void *desired, size_t desired_len, uint64_t deadline_ns,
                                      tenrec_store_value_fn *fn, void *arg, tenrec_error *err)
{
    const struct wanted w = { expected_len ? expected : "", desired_len ? desired : "",
                              expected_len, desired_len };
    struct held held = { 0 };
    struct change c = {
        .keys = &key, .n = 1, .held = &held, .wants_values = true, .plan = plan_swap, .arg = &w
    };
    bool made;
    tenrec_status st = change_run(self->impl, &c, deadline_ns, &made, err);

    if (st == TENREC_OK && made)
        st = fn(arg, 0, w.desired, desired_len, err);
    else if (st == TENREC_OK && held.value)
        st = fn(arg, 0, held.value, held.len, err);
    else if (st == TENREC_OK)
        st = fn(arg, 0, w.expected, expected_len, err);
    change_finish(&c);
    return st;
}

static bool remove_again(const struct change *c, uint32_t at)
{
    for (uint32_t i = 0; i < at; i++)
        if (strcmp(c->keys[i], c->keys[at]) == 0)
            return true;
    return false;
}

/* Keys that were not looked at are taken to exist. */
static enum change_step plan_remove(struct change *c, struct txn *t, char *const *names,
                                    tenrec_error *err)
{
    uint32_t n = 0;

    (void)err;
    for (uint32_t i = 0; i < c->n; i++) {
        const struct held *h = &c->held[i];
        const bool exists = !h->known || h->revision > 0;
        if (remove_again(c, i)) /* a txn may not name it twice */
            continue;
        txn_compare_number(t, names[i], "VERSION", exists ? "GREATER" : "EQUAL", 0);
        if (exists)
            txn_remove(t, names[i]);
        n += exists;
    }
    snprintf(c->result, sizeof c->result, "%" PRIu32, n);
    return n ? CHANGE_MAKE : CHANGE_LEAVE;
}

/* Of one txn. */
static tenrec_status remove_some(struct etcd_store *s, const char *const *keys, uint32_t n,
                                 uint64_t deadline_ns, uint32_t *ret, tenrec_error *err)
{
    struct held held[ETCD_TXN_KEYS] = { 0 };
    struct change c = { .keys = keys, .n = n, .held = held, .plan = plan_remove };
    bool made;
    tenrec_status st = change_run(s, &c, deadline_ns, &made, err);

    change_finish(&c);
    *ret = st == TENREC_OK && made ? (uint32_t)strtoul(c.result, NULL, 10) : 0;
    return st;
}

static uint32_t part_len(uint32_t n, uint32_t at)
{
    return n - at < ETCD_TXN_KEYS ? n - at : ETCD_TXN_KEYS;
}

static tenrec_status etcd_remove(struct tenrec_plugin_store *self, const char *const *keys,
                                 uint32_t n, uint64_t deadline_ns, uint32_t *ret, tenrec_error *err)
{
    tenrec_status st = TENREC_OK;
    uint32_t some;

    *ret = 0;
    for (uint32_t at = 0; at < n && st == TENREC_OK; at += ETCD_TXN_KEYS) {
        st = remove_some(self->impl, keys + at, part_len(n, at), deadline_ns, &some, err);
        *ret += some;
    }
    return st;
}

/* ---- reads ---- */

/* Begins a txn that fails if the server has lost the store, or the last change. */
static void read_begin(struct txn *t, struct etcd_store *s)
{
    int64_t revision;

    txn_begin(t, s);
    txn_compare_store(t);
    pthread_mutex_lock(&s->lock);
    revision = s->revision;
    pthread_mutex_unlock(&s->lock);
    if (revision)
        txn_compare_number(t, s->client, "MOD", "GREATER", revision - 1);
}

static tenrec_status read_run(struct txn *t, uint64_t deadline_ns, json_t **ret, tenrec_error *err)
{
    bool yes;
    tenrec_status st = txn_run(t, NULL, deadline_ns, ret, &yes, err);

    txn_drop(t);
    if (st == TENREC_OK && !yes) {
        json_decref(*ret);
        st = answer_lost(err);
    }
    return st;
}

/* Reads ETCD_TXN_KEYS keys at most; *ret_count of them are missing. */
static tenrec_status read_keys(struct etcd_store *s, const char *const *keys, uint32_t n,
                               bool values, uint64_t deadline_ns, json_t **ret, bool *ret_missing,
                               uint32_t *ret_count, tenrec_error *err)
{
    struct txn t;
    tenrec_status st;

    read_begin(&t, s);
    for (uint32_t i = 0; i < n; i++) {
        char *name = txn_key(s, keys[i]);
        t.broken |= !name;
        txn_range(&t, t.success, name, values);
        free(name);
    }
    st = read_run(&t, deadline_ns, ret, err);
    *ret_count = 0;
    for (uint32_t i = 0; i < n && st == TENREC_OK; i++) {
        ret_missing[i] = !answer_kv(*ret, i);
        *ret_count += ret_missing[i];
    }
    return st;
}

static tenrec_status etcd_check(struct tenrec_plugin_store *self, const char *const *keys,
                                uint32_t n, uint64_t deadline_ns, bool *ret_missing,
                                tenrec_error *err)
{
    tenrec_status st = TENREC_OK;
    json_t *answer;
    uint32_t count;

    for (uint32_t at = 0; at < n && st == TENREC_OK; at += ETCD_TXN_KEYS) {
        st = read_keys(self->impl, keys + at, part_len(n, at), false, deadline_ns, &answer,
                       ret_missing + at, &count, err);
        if (st == TENREC_OK)
            json_decref(answer);
    }
    return st;
}

/* Waits for the keys of one txn. Returns ETIMEDOUT, without a text, when some are missing. */
static tenrec_status get_part(struct etcd_store *s, const char *const *keys, uint32_t n,
                              bool values, uint64_t deadline_ns, json_t **ret, bool *ret_missing,
                              tenrec_error *err)
{
    struct backoff gap = { (uint64_t)GAP_MS * 1000, (uint64_t)GAP_MS * 1000 };
    tenrec_error why = { 0 };
    uint32_t count;

    for (;;) {
        enum http_end end;
        int64_t revision;
        json_t *answer;
        tenrec_status st =
            read_keys(s, keys, n, values, deadline_ns, &answer, ret_missing, &count, err);
        /* ETIMEDOUT means missing keys to the caller; a silent server is another error. */
        if (st == TENREC_ETIMEDOUT) {
            st = TENREC_EPEER_LOST;
            if (err)
                err->code = st;
        }
        if (st != TENREC_OK)
            return st;
        if (!count) {
            *ret = answer;
            return TENREC_OK;
        }
        revision = answer_revision(answer);
        json_decref(answer);
        if (clock_passed(deadline_ns))
            return TENREC_ETIMEDOUT;
        end = watch_wait(s, keys, n, ret_missing, revision, deadline_ns, &why);
        if (end == HTTP_NEVER) {
            if (err)
                *err = why;
            return why.code;
        }
        if (end == HTTP_AGAIN)
            backoff_take(&gap, deadline_ns);
        if (clock_passed(asker_answer_ns(deadline_ns)))
            return TENREC_ETIMEDOUT; /* too late to look again */
    }
}

static tenrec_status get_give(const json_t *answer, uint32_t from, uint32_t n,
                              tenrec_store_value_fn *fn, void *arg, tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    for (uint32_t i = 0; i < n && st == TENREC_OK; i++) {
        char *value;
        size_t len;
        st = answer_value(answer_kv(answer, i), &value, &len, err);
        if (st == TENREC_OK)
            st = fn(arg, from + i, value, len, err);
        free(value);
    }
    return st;
}

static tenrec_status etcd_get(struct tenrec_plugin_store *self, const char *const *keys, uint32_t n,
                              uint64_t deadline_ns, tenrec_store_value_fn *fn, void *arg,
                              bool *ret_missing, tenrec_error *err)
{
    const uint32_t parts = (n + ETCD_TXN_KEYS - 1) / ETCD_TXN_KEYS;
    json_t **answers = calloc(parts ? parts : 1, sizeof(json_t *));
    tenrec_status st =
        answers ? TENREC_OK : tenrec_fail(err, TENREC_ENOMEM, "no memory for values");
    uint32_t at = 0;

    for (; at < n && st == TENREC_OK; at += ETCD_TXN_KEYS)
        st = get_part(self->impl, keys + at, part_len(n, at), fn != NULL, deadline_ns,
                      &answers[at / ETCD_TXN_KEYS], ret_missing + at, err);
    if (st == TENREC_ETIMEDOUT && at < n) { /* which of the others are missing */
        st = etcd_check(self, keys + at, n - at, deadline_ns, ret_missing + at, err);
        st = st == TENREC_OK ? TENREC_ETIMEDOUT : st;
    }
    for (uint32_t i = 0; i < parts && st == TENREC_OK && fn; i++)
        st = get_give(answers[i], i * ETCD_TXN_KEYS, part_len(n, i * ETCD_TXN_KEYS), fn, arg, err);
    for (uint32_t i = 0; answers && i < parts; i++)
        json_decref(answers[i]);
    free(answers);
    return st;
}

/* All keys begin with a slash, behind which is '0'. */
static tenrec_status etcd_num_keys(struct tenrec_plugin_store *self, uint64_t deadline_ns,
                                   int64_t *ret, tenrec_error *err)
{
    struct etcd_store *s = self->impl;
    char *first = txn_key(s, "/"), *end = txn_key(s, "0");
    struct txn t;
    json_t *answer;
    tenrec_status st;

    read_begin(&t, s);
    t.broken |=
        !first || !end ||
        json_array_append_new(t.success, json_pack("{s:{s:s,s:s,s:b}}", "request_range", "key",
                                                   first, "range_end", end, "count_only", 1)) != 0;
    free(first);
    free(end);
    st = read_run(&t, deadline_ns, &answer, err);
    if (st != TENREC_OK)
        return st;
    *ret = answer_number(answer_at(answer, 0), "count");
    json_decref(answer);
    return TENREC_OK;
}

/* A server that is away drops the record of this client when the lease expires. */
static void close_record(struct etcd_store *s)
{
    json_t *request = json_pack("{s:s}", "key", s->client), *answer;

    if (etcd_ask(s, "kv/deleterange", request, NULL, clock_deadline_ms(0), &answer, NULL) ==
        TENREC_OK)
        json_decref(answer);
    json_decref(request);
}

static void etcd_close(struct tenrec_plugin_store *self, uint64_t deadline_ns)
{
    struct etcd_store *s = self->impl;

    (void)deadline_ns;
    keeper_stop(&s->keeper);
    if (s->asked && atomic_load(&s->asker.reached))
        close_record(s);
    etcd_store_free(s);
}

const struct tenrec_store_ops etcd_ops = {
    .size = sizeof etcd_ops,
    .name = etcd_name,
    .set = etcd_set,
    .add = etcd_add,
    .compare_set = etcd_compare_set,
    .get = etcd_get,
    .check = etcd_check,
    .remove = etcd_remove,
    .num_keys = etcd_num_keys,
    .close = etcd_close,
    .address = etcd_address,
};
