/* SPDX-License-Identifier: Apache-2.0 */
/* store.c - the operations of a store, as scripts. */
#include "store.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#define GAP_MS 50 /* before a broken subscriber connects again */

static const char *redis_name(struct tenrec_plugin_store *self)
{
    const struct redis_store *s = self->impl;

    return s->name;
}

static const char *redis_address(struct tenrec_plugin_store *self)
{
    const struct redis_store *s = self->impl;

    return *s->address ? s->address : NULL;
}

static tenrec_status fail_reply(tenrec_error *err)
{
    return tenrec_fail(err, TENREC_EPROTOCOL, "malformed reply of a script");
}

/* Text `i` of a reply, or NULL. */
static const redisReply *text_at(const redisReply *r, size_t i)
{
    return i < r->elements && r->element[i]->type == REDIS_REPLY_STRING ? r->element[i] : NULL;
}

static bool number_at(const redisReply *r, size_t i, int64_t *ret)
{
    const redisReply *t = text_at(r, i);
    char *end;

    if (!t)
        return false;
    errno = 0;
    *ret = strtoll(t->str, &end, 10);
    return end != t->str && *end == '\0' && errno == 0;
}

/* Runs a script whose reply has a number at `at`. */
static tenrec_status call_number(struct tenrec_plugin_store *self, const struct call *call,
                                 uint64_t deadline_ns, size_t at, int64_t *ret, tenrec_error *err)
{
    redisReply *r;
    tenrec_status st = redis_call(self->impl, call, deadline_ns, &r, err);

    if (st != TENREC_OK)
        return st;
    if (!number_at(r, at, ret))
        st = fail_reply(err);
    freeReplyObject(r);
    return st;
}

static tenrec_status redis_set(struct tenrec_plugin_store *self, const char *key, const void *data,
                               size_t len, uint64_t deadline_ns, tenrec_error *err)
{
    const char *arg[] = { key, len ? data : "" };
    const size_t size[] = { strlen(key), len };
    const struct call call = { script_set, true, 2, arg, size };
    redisReply *r;
    tenrec_status st = redis_call(self->impl, &call, deadline_ns, &r, err);

    if (st == TENREC_OK)
        freeReplyObject(r);
    return st;
}

static tenrec_status redis_add(struct tenrec_plugin_store *self, const char *key, int64_t delta,
                               uint64_t deadline_ns, int64_t *ret, tenrec_error *err)
{
    char text[24];
    const char *arg[] = { key, text };
    const struct call call = { script_add, true, 2, arg, NULL };
    tenrec_status st;

    snprintf(text, sizeof text, "%" PRId64, delta);
    st = call_number(self, &call, deadline_ns, 1, ret, err);
    if (st == TENREC_EINVAL)
        tenrec_error_prefix(err, "cannot add to key \"%.100s\"", key);
    return st;
}

static tenrec_status redis_compare_set(struct tenrec_plugin_store *self, const char *key,
                                       const void *expected, size_t expected_len,
                                       const void *desired, size_t desired_len,
                                       uint64_t deadline_ns, tenrec_store_value_fn *fn, void *arg,
                                       tenrec_error *err)
{
    const char *words[] = { key, expected_len ? expected : "", desired_len ? desired : "" };
    const size_t size[] = { strlen(key), expected_len, desired_len };
    const struct call call = { script_compare_set, true, 3, words, size };
    const redisReply *how, *now;
    redisReply *r;
    tenrec_status st = redis_call(self->impl, &call, deadline_ns, &r, err);

    if (st != TENREC_OK)
        return st;
    how = text_at(r, 0);
    now = text_at(r, 1);
    if (how && how->str[0] == '1')
        st = fn(arg, 0, words[2], desired_len, err);
    else if (how && how->str[0] == '2')
        st = fn(arg, 0, words[1], expected_len, err);
    else
        st = how && now ? fn(arg, 0, now->str, now->len, err) : fail_reply(err);
    freeReplyObject(r);
    return st;
}

/* Which of `n` keys are not there, from a reply's texts from `first` on. */
static tenrec_status read_missing(const redisReply *r, size_t first, uint32_t n, bool *ret_missing,
                                  uint32_t *ret_count, tenrec_error *err)
{
    *ret_count = 0;
    for (uint32_t i = 0; i < n; i++) {
        const redisReply *t = text_at(r, first + i);
        if (!t)
            return fail_reply(err);
        ret_missing[i] = t->str[0] != '1';
        *ret_count += ret_missing[i];
    }
    return TENREC_OK;
}

/* The arguments and the state of one get. */
struct wish {
    struct redis_store *store;
    const char *const *keys;
    uint32_t n, n_missing;
    uint64_t deadline_ns;
    tenrec_store_value_fn *fn;
    void *arg;
    bool *missing;
};

static tenrec_status give_values(const struct wish *w, const redisReply *r, tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    for (uint32_t i = 0; st == TENREC_OK && w->fn && i < w->n; i++) {
        const redisReply *t = text_at(r, i + 1);
        st = t ? w->fn(w->arg, i, t->str, t->len, err) : fail_reply(err);
    }
    return st;
}

/* Delivers the values if all keys exist. Else returns ETIMEDOUT without a text and
 * marks the missing keys. */
static tenrec_status store_look(struct wish *w, tenrec_error *err)
{
    const struct call call = { w->fn ? script_get : script_check, false, w->n, w->keys, NULL };
    const redisReply *first;
    redisReply *r;
    bool all;
    tenrec_status st = redis_call(w->store, &call, w->deadline_ns, &r, err);

    w->n_missing = 0;
    /* ETIMEDOUT means missing keys to the caller; a silent server is another error. */
    if (st == TENREC_ETIMEDOUT) {
        st = TENREC_EPEER_LOST;
        if (err)
            err->code = st;
    }
    if (st != TENREC_OK)
        return st;
    first = text_at(r, 0);
    all = w->fn && first && first->str[0] == '1';
    if (all)
        st = give_values(w, r, err);
    else
        st = read_missing(r, w->fn != NULL, w->n, w->missing, &w->n_missing, err);
    freeReplyObject(r);
    return st == TENREC_OK && w->n_missing ? TENREC_ETIMEDOUT : st;
}

/* Too late to look again: the server could not answer by the deadline. */
static bool is_over(const struct wish *w)
{
    return clock_passed(clock_later_ms(w->deadline_ns, REDIS_ANSWER_MS));
}

/* Subscribes and polls until all keys exist. Returns as store_look does; *ret_end is
 * CONN_AGAIN when the connection broke. */
static tenrec_status store_listen(struct wish *w, enum conn_end *ret_end, tenrec_error *err)
{
    struct conn *subscriber = NULL;
    tenrec_status st = TENREC_ETIMEDOUT;
    tenrec_error why = { 0 };
    enum conn_end end =
        subscriber_open(w->store, w->keys, w->n, w->missing, w->deadline_ns, &subscriber, &why);

    /* Poll once more: a key may have been set before the subscription. */
    while (end == CONN_OK && !is_over(w) && (st = store_look(w, err)) == TENREC_ETIMEDOUT &&
           !clock_passed(w->deadline_ns))
        end = subscriber_wait(subscriber, w->n_missing, w->deadline_ns, &why);
    subscriber_close(w->store, subscriber, end != CONN_OK, w->deadline_ns);
    if (end == CONN_NEVER) {
        if (err)
            *err = why;
        st = why.code;
    }
    *ret_end = end;
    return st;
}

static tenrec_status redis_get(struct tenrec_plugin_store *self, const char *const *keys,
                               uint32_t n, uint64_t deadline_ns, tenrec_store_value_fn *fn,
                               void *arg, bool *ret_missing, tenrec_error *err)
{
    struct wish w = { self->impl, keys, n, 0, deadline_ns, fn, arg, ret_missing };
    enum conn_end end = CONN_OK;
    struct backoff gap = { (uint64_t)GAP_MS * 1000, (uint64_t)GAP_MS * 1000 };
    tenrec_status st;

    /* store_look waits for a server that is away, and reports when it stays away. */
    while ((st = store_look(&w, err)) == TENREC_ETIMEDOUT && !clock_passed(deadline_ns)) {
        st = store_listen(&w, &end, err);
        if (st != TENREC_ETIMEDOUT || end == CONN_NEVER || is_over(&w))
            break;
        if (end == CONN_AGAIN)
            backoff_take(&gap, deadline_ns);
    }
    return st;
}

static tenrec_status redis_check(struct tenrec_plugin_store *self, const char *const *keys,
                                 uint32_t n, uint64_t deadline_ns, bool *ret_missing,
                                 tenrec_error *err)
{
    const struct call call = { script_check, false, n, keys, NULL };
    redisReply *r;
    uint32_t count;
    tenrec_status st = redis_call(self->impl, &call, deadline_ns, &r, err);

    if (st != TENREC_OK)
        return st;
    st = read_missing(r, 0, n, ret_missing, &count, err);
    freeReplyObject(r);
    return st;
}

static tenrec_status redis_remove(struct tenrec_plugin_store *self, const char *const *keys,
                                  uint32_t n, uint64_t deadline_ns, uint32_t *ret,
                                  tenrec_error *err)
{
    const struct call call = { script_remove, true, n, keys, NULL };
    int64_t count = 0;
    tenrec_status st = call_number(self, &call, deadline_ns, 1, &count, err);

    *ret = (uint32_t)count;
    return st;
}

static tenrec_status redis_num_keys(struct tenrec_plugin_store *self, uint64_t deadline_ns,
                                    int64_t *ret, tenrec_error *err)
{
    const struct call call = { .script = script_count };

    return call_number(self, &call, deadline_ns, 0, ret, err);
}

static void redis_close(struct tenrec_plugin_store *self, uint64_t deadline_ns)
{
    const struct call call = { .script = script_forget };
    struct redis_store *s = self->impl;
    redisReply *r = NULL;

    (void)deadline_ns;
    keeper_stop(&s->keeper);
    /* A server that is away drops this client when the lease expires. */
    if (s->conn && redis_call(s, &call, clock_deadline_ms(0), &r, NULL) == TENREC_OK)
        freeReplyObject(r);
    redis_store_free(s);
}

const struct tenrec_store_ops redis_ops = {
    .size = sizeof redis_ops,
    .name = redis_name,
    .set = redis_set,
    .add = redis_add,
    .compare_set = redis_compare_set,
    .get = redis_get,
    .check = redis_check,
    .remove = redis_remove,
    .num_keys = redis_num_keys,
    .close = redis_close,
    .address = redis_address,
};
