/* SPDX-License-Identifier: Apache-2.0 */
/* txn.c - txns of etcd as JSON, and their answers. */
#include "etcd.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void txn_begin(struct txn *t, struct etcd_store *s)
{
    *t = (struct txn){ s, json_array(), json_array(), json_array(), false };
    t->broken = !t->compare || !t->success || !t->failure;
}

void txn_drop(struct txn *t)
{
    json_decref(t->compare);
    json_decref(t->success);
    json_decref(t->failure);
}

/* Takes the part. */
static void txn_add(struct txn *t, json_t *into, json_t *part)
{
    if (json_array_append_new(into, part) != 0)
        t->broken = true;
}

char *txn_key(const struct etcd_store *s, const char *key)
{
    char head[STORE_PREFIX_MAX + 2];

    snprintf(head, sizeof head, "%s:", s->url.prefix);
    return base64_encode(head, key, strlen(key));
}

void txn_compare_number(struct txn *t, const char *key, const char *target, const char *result,
                        int64_t n)
{
    const char *name = strcmp(target, "MOD") == 0 ? "mod_revision" : "version";
    char text[24];

    snprintf(text, sizeof text, "%" PRId64, n);
    txn_add(
        t, t->compare,
        json_pack("{s:s,s:s,s:s,s:s}", "target", target, "result", result, "key", key, name, text));
}

void txn_compare_value(struct txn *t, const char *key, const void *data, size_t len)
{
    char *value = base64_encode("", data, len);

    txn_add(t, t->compare,
            value ? json_pack("{s:s,s:s,s:s,s:s}", "target", "VALUE", "result", "EQUAL", "key", key,
                              "value", value)
                  : NULL);
    free(value);
}

void txn_put(struct txn *t, const char *key, const void *data, size_t len)
{
    char *value = base64_encode("", data, len), lease[24];

    snprintf(lease, sizeof lease, "%" PRId64, t->s->lease);
    txn_add(t, t->success,
            value ? json_pack("{s:{s:s,s:s,s:s}}", "request_put", "key", key, "value", value,
                              "lease", lease)
                  : NULL);
    free(value);
}

void txn_remove(struct txn *t, const char *key)
{
    txn_add(t, t->success, json_pack("{s:{s:s}}", "request_delete_range", "key", key));
}

void txn_range(struct txn *t, json_t *into, const char *key, bool value)
{
    txn_add(t, into, json_pack("{s:{s:s,s:b}}", "request_range", "key", key, "keys_only", !value));
}

void txn_compare_store(struct txn *t)
{
    txn_compare_value(t, t->s->meta, t->s->id, strlen(t->s->id));
    txn_range(t, t->failure, t->s->meta, true);
    txn_range(t, t->failure, t->s->client, true);
}

tenrec_status txn_run(struct txn *t, bool *lost, uint64_t deadline_ns, json_t **ret, bool *ret_yes,
                      tenrec_error *err)
{
    json_t *request = t->broken ? NULL
                                : json_pack("{s:O,s:O,s:O}", "compare", t->compare, "success",
                                            t->success, "failure", t->failure);
    tenrec_status st = etcd_ask(t->s, "kv/txn", request, lost, deadline_ns, ret, err);

    json_decref(request);
    if (st == TENREC_OK)
        *ret_yes = json_is_true(json_object_get(*ret, "succeeded"));
    return st;
}

int64_t answer_number(const json_t *object, const char *name)
{
    const json_t *n = json_object_get(object, name); /* of 64 bits: a text; 0: left out */
    const char *text = json_string_value(n);

    return text ? strtoll(text, NULL, 10) : json_integer_value(n);
}

int64_t answer_revision(const json_t *answer)
{
    return answer_number(json_object_get(answer, "header"), "revision");
}

const json_t *answer_at(const json_t *answer, size_t i)
{
    const json_t *one = json_array_get(json_object_get(answer, "responses"), i);

    return json_object_iter_value(json_object_iter((json_t *)one));
}

const json_t *answer_kv(const json_t *answer, size_t i)
{
    return json_array_get(json_object_get(answer_at(answer, i), "kvs"), 0);
}

tenrec_status answer_value(const json_t *kv, char **ret, size_t *ret_len, tenrec_error *err)
{
    const char *text = json_string_value(json_object_get(kv, "value"));

    *ret = base64_decode(text ? text : "", ret_len); /* an empty one is left out */
    if (*ret)
        return TENREC_OK;
    return *ret_len ? tenrec_fail(err, TENREC_ENOMEM, "no memory for a value")
                    : tenrec_fail(err, TENREC_EPROTOCOL, "the server sent a malformed value");
}

tenrec_status answer_lost(tenrec_error *err)
{
    return tenrec_fail(err, TENREC_EPEER_LOST,
                       "the server has lost its keys (its data were removed or replaced, the lease "
                       "expired, or the keys were removed): restart all workers");
}

tenrec_status answer_check_id(const struct etcd_store *s, const json_t *answer, tenrec_error *err)
{
    const json_t *kv = answer_kv(answer, 0);
    char *value;
    size_t len;
    tenrec_status st;

    if (!kv)
        return answer_lost(err);
    st = answer_value(kv, &value, &len, err);
    if (st == TENREC_OK && (len != strlen(s->id) || memcmp(value, s->id, len) != 0))
        st = answer_lost(err);
    free(value);
    return st;
}
