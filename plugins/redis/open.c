/* SPDX-License-Identifier: Apache-2.0 */
/* open.c - opens a store from a URL and options, and frees it. */
#include "store.h"
#include "tls.h"

#include <inttypes.h>
#include <stdlib.h>

static const struct store_url_form form = { "redis", 6379, 1 };

/* Reads the identity and lease of the store, or creates it with `wanted_ms`. */
static tenrec_status open_identify(struct redis_store *s, uint64_t wanted_ms, uint64_t deadline_ns,
                                   tenrec_error *err)
{
    char id[17], lease[24];
    const char *arg[] = { id, lease };
    const struct call call = { script_open, false, 2, arg, NULL };
    redisReply *r;
    tenrec_status st = store_draw(id, err);

    snprintf(lease, sizeof lease, "%" PRIu64, wanted_ms);
    if (st == TENREC_OK)
        st = redis_call(s, &call, deadline_ns, &r, err);
    if (st != TENREC_OK)
        return st;
    if (r->elements == 2 && r->element[0]->str && r->element[1]->str) {
        snprintf(s->id, sizeof s->id, "%s", r->element[0]->str);
        s->keeper.lease_ms = strtoull(r->element[1]->str, NULL, 10);
    } else {
        st = tenrec_fail(err, TENREC_EPROTOCOL, "malformed reply of a script");
    }
    freeReplyObject(r);
    if (s->conn)
        conn_address(s->conn, s->address);
    return st;
}

static tenrec_status open_fill(struct redis_store *s, const struct redis_options *o,
                               tenrec_error *err)
{
    const struct store_url *url = &s->url;
    const struct tls_files files = { o->login.ca_file, o->login.cert_file, o->login.key_file };
    tenrec_status st = login_read(&o->login, url, &s->user, err);

    store_url_name(url, &form, sizeof s->name, s->name);
    snprintf(s->meta, sizeof s->meta, "%s:meta", url->prefix);
    if (st == TENREC_OK && url->tls)
        st = tls_context_open(&files, &s->tls, err);
    if (st != TENREC_OK)
        return st;
    s->login = (struct conn_login){ .url = url,
                                    .user = s->user.user,
                                    .password = s->user.password,
                                    .database = o->database,
                                    .tls = s->tls };
    return store_draw(s->client, err);
}

static tenrec_status lease_renew(void *store, tenrec_error *err)
{
    const struct call call = { .script = script_renew };
    redisReply *reply = NULL;
    tenrec_status st = redis_call(store, &call, clock_deadline_ms(KEEPER_CALL_MS), &reply, err);

    freeReplyObject(st == TENREC_OK ? reply : NULL);
    return st;
}

static struct redis_store *store_new(struct tenrec_plugin_store *self, const struct store_url *url)
{
    struct redis_store *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    s->self = self;
    s->url = *url;
    pthread_mutex_init(&s->lock, NULL);
    turn_init(&s->turn);
    s->keeper = (struct keeper){ .self = self, .name = s->name, .renew = lease_renew, .arg = s };
    return s;
}

void redis_store_free(struct redis_store *s)
{
    conn_drop(s->conn);
    conn_drop(s->subscriber);
    tls_context_drop(s->tls);
    explicit_bzero(&s->user, sizeof s->user);
    turn_finish(&s->turn);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

tenrec_status redis_store_check(const void *options, const char *url, tenrec_error *err)
{
    struct store_url parsed;

    (void)options;
    return store_url_read(url, &form, &parsed, err);
}

tenrec_status redis_store_open(const struct tenrec_store_init *in, struct tenrec_plugin_store *self,
                               tenrec_error *err)
{
    const struct redis_options *o = in->options;
    const uint64_t wanted_ms = o->lease_ms == TENREC_FOREVER ? 0 : o->lease_ms;
    struct redis_store *s;
    struct store_url url;
    tenrec_status st = store_url_read(in->url, &form, &url, err);

    if (st != TENREC_OK)
        return st;
    if (!(s = store_new(self, &url)))
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a store");
    st = open_fill(s, o, err);
    if (st == TENREC_OK)
        st = open_identify(s, wanted_ms, in->deadline_ns, err);
    if (st == TENREC_OK)
        st = keeper_start(&s->keeper, wanted_ms, "tenrec-redis", err);
    if (st != TENREC_OK) {
        tenrec_error_prefix(err, "%s", s->name);
        redis_store_free(s);
        return st;
    }
    self->ops = &redis_ops;
    self->impl = s;
    return TENREC_OK;
}
