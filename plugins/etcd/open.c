/* SPDX-License-Identifier: Apache-2.0 */
/* open.c - opens a store from a URL and options, and frees it. */
#include "etcd.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct store_url_form form = { "etcd", 2379, STORE_HOSTS_MAX };

/* "9f3a80c1d2e4b567 7587880 600000": random, the lease of etcd, its time in ms. */
static tenrec_status open_read_id(struct etcd_store *s, const json_t *kv, tenrec_error *err)
{
    uint64_t number, lease_ms;
    int64_t lease;
    char *value, end;
    size_t len;
    tenrec_status st = answer_value(kv, &value, &len, err);

    if (st != TENREC_OK)
        return st;
    if (len >= sizeof s->id || len != strlen(value) ||
        sscanf(value, "%16" SCNx64 " %19" SCNd64 " %15" SCNu64 "%c", &number, &lease, &lease_ms,
               &end) != 3) {
        free(value);
        return tenrec_fail(err, TENREC_ECONFIG,
                           "the prefix holds keys that are not of a store: choose another prefix");
    }
    memcpy(s->id, value, len + 1);
    s->lease = lease;
    s->keeper.lease_ms = lease_ms;
    free(value);
    return TENREC_OK;
}

/* Makes the store, unless another process has made it; then its identity is read: *ret_found. */
static tenrec_status open_make(struct etcd_store *s, uint64_t wanted_ms, uint64_t deadline_ns,
                               bool *ret_found, tenrec_error *err)
{
    json_t *answer = NULL;
    int64_t lease;
    struct txn t;
    char id[sizeof s->id], number[17];
    bool made = false;
    tenrec_status st = store_draw(number, err);

    *ret_found = false;
    if (st == TENREC_OK)
        st = lease_grant(s, wanted_ms, deadline_ns, &lease, err);
    if (st != TENREC_OK)
        return st;
    snprintf(id, sizeof id, "%s %" PRId64 " %" PRIu64, number, lease, wanted_ms);
    txn_begin(&t, s);
    txn_compare_number(&t, s->meta, "MOD", "EQUAL", 0);
    s->lease = lease;
    txn_put(&t, s->meta, id, strlen(id));
    txn_range(&t, t.failure, s->meta, true);
    st = txn_run(&t, NULL, deadline_ns, &answer, &made, err);
    txn_drop(&t);
    if (st != TENREC_OK)
        return st;
    *ret_found = made || answer_kv(answer, 0);
    if (made)
        snprintf(s->id, sizeof s->id, "%s", id), s->keeper.lease_ms = wanted_ms;
    else if (*ret_found)
        st = open_read_id(s, answer_kv(answer, 0), err); /* ours, if an answer was lost */
    json_decref(answer);
    if (lease && strcmp(s->id, id) != 0)
        lease_revoke(s, lease, deadline_ns);
    return st;
}

/* Finds the store, or makes it with a lease of `wanted_ms`. */
static tenrec_status open_find(struct etcd_store *s, uint64_t wanted_ms, uint64_t deadline_ns,
                               bool *ret_found, tenrec_error *err)
{
    json_t *request = json_pack("{s:s}", "key", s->meta), *answer;
    const json_t *kv;
    tenrec_status st = etcd_ask(s, "kv/range", request, NULL, deadline_ns, &answer, err);

    json_decref(request);
    if (st != TENREC_OK)
        return st;
    kv = json_array_get(json_object_get(answer, "kvs"), 0);
    *ret_found = kv != NULL;
    if (kv)
        st = open_read_id(s, kv, err);
    json_decref(answer);
    if (!kv)
        st = open_make(s, wanted_ms, deadline_ns, ret_found, err);
    /* A store whose lease has just expired is about to vanish. */
    if (st == TENREC_OK && *ret_found)
        st = lease_renew(s, deadline_ns, ret_found, err);
    return st;
}

static tenrec_status open_identify(struct etcd_store *s, uint64_t wanted_ms, uint64_t deadline_ns,
                                   tenrec_error *err)
{
    struct backoff gap = { ASKER_GAP_US, ASKER_GAP_MOST_US };
    bool found = false;
    tenrec_status st = TENREC_OK;

    while (st == TENREC_OK && !found) {
        *s->id = '\0';
        st = open_find(s, wanted_ms, deadline_ns, &found, err);
        if (st == TENREC_OK && !found && !backoff_take(&gap, deadline_ns))
            st =
                tenrec_fail(err, TENREC_ETIMEDOUT, "the store of an expired lease does not vanish");
    }
    return st;
}

static tenrec_status open_fill(struct etcd_store *s, const struct etcd_options *o,
                               tenrec_error *err)
{
    const struct store_url *url = &s->url;
    char *meta = NULL, *client = NULL, record[24] = "c/";
    tenrec_status st = login_read(&o->login, url, &s->login, err);

    store_url_name(url, &form, sizeof s->name, s->name);
    s->asker.n_endpoints = url->n_hosts;
    s->pool.ca_file = o->login.ca_file;
    s->pool.cert_file = o->login.cert_file;
    s->pool.key_file = o->login.key_file;
    if (st == TENREC_OK && *s->login.password && !*s->login.user)
        st = tenrec_fail(err, TENREC_ECONFIG, "a password is given, but no user");
    if (st == TENREC_OK)
        st = store_draw(record + 2, err);
    if (st != TENREC_OK)
        return st;
    meta = txn_key(s, "id");
    client = txn_key(s, record);
    if (meta && client) {
        snprintf(s->meta, sizeof s->meta, "%s", meta);
        snprintf(s->client, sizeof s->client, "%s", client);
    } else {
        st = tenrec_fail(err, TENREC_ENOMEM, "no memory for a store");
    }
    free(meta);
    free(client);
    return st;
}

static struct etcd_store *store_new(struct tenrec_plugin_store *self)
{
    struct etcd_store *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    s->self = self;
    s->asker = (struct asker){ .self = self, .name = s->name, .n_endpoints = 1 };
    s->pool.server = "etcd";
    http_pool_init(&s->pool);
    pthread_mutex_init(&s->lock, NULL);
    turn_init(&s->turn);
    s->keeper = (struct keeper){ .self = self, .name = s->name, .renew = lease_keep, .arg = s };
    return s;
}

void etcd_store_free(struct etcd_store *s)
{
    http_pool_finish(&s->pool);
    explicit_bzero(&s->login, sizeof s->login);
    explicit_bzero(s->token, sizeof s->token);
    turn_finish(&s->turn);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static tenrec_status open_read_url(const char *url, struct store_url *ret, tenrec_error *err)
{
    tenrec_status st = store_url_read(url, &form, ret, err);

    if (st == TENREC_OK && strchr(ret->prefix, ':')) /* it ends the prefix */
        st = tenrec_fail(err, TENREC_EINVAL, "a prefix has no colon");
    return st;
}

tenrec_status etcd_store_check(const void *options, const char *url, tenrec_error *err)
{
    struct store_url parsed;

    (void)options;
    return open_read_url(url, &parsed, err);
}

tenrec_status etcd_store_open(const struct tenrec_store_init *in, struct tenrec_plugin_store *self,
                              tenrec_error *err)
{
    const struct etcd_options *o = in->options;
    const uint64_t wanted_ms = o->lease_ms == TENREC_FOREVER ? 0 : o->lease_ms;
    struct etcd_store *s = store_new(self);
    tenrec_status st;

    if (!s)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a store");
    st = open_read_url(in->url, &s->url, err);
    if (st != TENREC_OK) {
        etcd_store_free(s);
        return st;
    }
    st = open_fill(s, o, err);
    if (st == TENREC_OK)
        st = open_identify(s, wanted_ms, in->deadline_ns, err);
    if (st == TENREC_OK)
        st = keeper_start(&s->keeper, wanted_ms, "tenrec-etcd", err);
    if (st != TENREC_OK) {
        tenrec_error_prefix(err, "%s", s->name);
        etcd_store_free(s);
        return st;
    }
    s->asker.is_open = true;
    self->ops = &etcd_ops;
    self->impl = s;
    return TENREC_OK;
}
