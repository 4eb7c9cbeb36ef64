/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/store/store_clients.h"

#include "conformance/case.h"
#include "core/base/clock.h"
#include "group/store/store.h"
#include "security/proof/security.h"

#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <tenrec/config.h>

#define KEYS_MAX 64   /* that a case notes */
#define CLOSE_MS 1000 /* of the rule */
#define PREFIX_MAX 64

struct tenrec_store *one, *two;

static struct {
    const char *url;
    bool is_guess; /* the URL is the command's */
    char prefix[PREFIX_MAX];
    struct stores *stores;
    struct security *security;
    pthread_mutex_t lock; /* guards the keys */
    char *key[KEYS_MAX];  /* owns */
    size_t n_keys;
} clients = { .lock = PTHREAD_MUTEX_INITIALIZER };

uint64_t soon(void)
{
    return clock_deadline_ms(expect_ms());
}

const char *clients_url(void)
{
    return clients.url;
}

char *clients_key(const char *key)
{
    char *whole;

    expect_here(asprintf(&whole, "/%s/%s", clients.prefix, key) > 0);
    return whole;
}

uint32_t clients_lack(void)
{
    return one->base->self.ops->lacks;
}

void clients_need(uint32_t lacks, const char *what)
{
    if (clients_lack() & lacks)
        expect_not_offered(what);
}

void clients_note(const char *key)
{
    size_t i = 0;

    pthread_mutex_lock(&clients.lock);
    while (i < clients.n_keys && strcmp(clients.key[i], key) != 0)
        i++;
    if (i == clients.n_keys) {
        expect_here(clients.n_keys < KEYS_MAX);
        expect_here(clients.key[clients.n_keys++] = strdup(key));
    }
    pthread_mutex_unlock(&clients.lock);
}

/* Returns false for the kinds of the core. */
static bool clients_scheme(char ret[STORES_SCHEME_MAX])
{
    return stores_scheme(clients.url, ret) && !stores_own(ret);
}

bool clients_choice(struct stores_choice *ret)
{
    char scheme[STORES_SCHEME_MAX];
    tenrec_error err;

    return clients_scheme(scheme) && stores_find(clients.stores, scheme, ret, &err) == TENREC_OK;
}

/* ---- life ---- */

tenrec_status clients_open_url(const char *url, uint64_t deadline_ns, struct tenrec_store **ret,
                               tenrec_error *err)
{
    struct tenrec_store *root;
    tenrec_status st =
        store_open_url(url, clients.security, clients.stores, deadline_ns, &root, err);

    if (st != TENREC_OK)
        return st;
    st = tenrec_store_open_prefix(root, clients.prefix, ret, err);
    tenrec_store_close(root); /* the view keeps it open */
    return st;
}

struct tenrec_store *clients_open(void)
{
    struct tenrec_store *s = NULL;
    tenrec_error err;

    expect_ok(clients_open_url(clients.url, soon(), &s, &err), &err, "the open");
    return s;
}

/* Before anything is known of the store: a wrong URL or a server that does not run breaks no rule.
 */
static struct tenrec_store *clients_open_first(void)
{
    struct tenrec_store *s = NULL;
    tenrec_error err;
    tenrec_status st = clients_open_url(clients.url, soon(), &s, &err);

    if (st == TENREC_ECONNECT || st == TENREC_EOS || st == TENREC_ECONFIG || st == TENREC_EINVAL ||
        st == TENREC_EPERM) {
        tenrec_error_prefix(&err, "cannot open the store%s",
                            clients.is_guess ? "; give its URL in front of the plugin" : "");
        expect_unusable(&err);
    }
    if (st == TENREC_EPLUGIN)
        expect_of("ST-6");
    expect_ok(st, &err, "the open");
    return s;
}

void clients_close(struct tenrec_store **s)
{
    const uint64_t since_ns = clock_now_ns();
    uint64_t ms;

    expect_of("ST-15");
    tenrec_store_close(*s);
    *s = NULL;
    ms = (clock_now_ns() - since_ns) / 1000000;
    if (ms > expect_slow(CLOSE_MS))
        expect_fail("close takes %" PRIu64 " ms, at most %u are allowed", ms, CLOSE_MS);
    expect_of(NULL);
}

/* Ends the case where it cannot be read. */
static struct tenrec_config *clients_config(const struct conformance_setup *setup)
{
    struct tenrec_config *config;
    tenrec_error err;

    if (setup->text ? tenrec_config_parse(setup->text, setup->path, &config, &err)
                    : tenrec_config_load(setup->path, &config, &err))
        expect_unusable(&err);
    return config;
}

static void clients_begin(const struct conformance_setup *setup)
{
    struct tenrec_config *config = clients_config(setup);
    char scheme[STORES_SCHEME_MAX];
    struct stores_choice choice;
    uint64_t random = 0;
    tenrec_error err;
    tenrec_status st;
    bool plugin;

    clients.url = setup->url;
    clients.is_guess = setup->own_url != NULL;
    expect_here(getrandom(&random, sizeof random, 0) == sizeof random);
    snprintf(clients.prefix, sizeof clients.prefix, "conformance/%016" PRIx64, random);
    st = security_open(config, CLOCK_NEVER, &clients.security, &err);
    plugin = clients_scheme(scheme);
    if (!st)
        st = stores_load(config, plugin ? scheme : NULL, &clients.stores, &err);
    if (!st && plugin)
        st = stores_find(clients.stores, scheme, &choice, &err);
    tenrec_config_drop(config);
    if (st)
        expect_unusable(&err);
}

static void clients_end(void)
{
    for (size_t i = 0; i < clients.n_keys; i++)
        free(clients.key[i]);
    clients.n_keys = 0;
    stores_drop(clients.stores);
    security_drop(clients.security);
}

static void clients_remove_keys(void)
{
    struct tenrec_store *s = one ? one : two ? two : clients_open();
    tenrec_error err;

    expect_ok(
        store_remove_all(s, (const char *const *)clients.key, clients.n_keys, soon(), NULL, &err),
        &err, "remove");
    if (!one && !two)
        clients_close(&s);
}

void clients_run(const struct conformance_case *c, const struct conformance_setup *setup)
{
    struct leftover before;

    clients_begin(setup);
    before = leftover_count();
    if (c->of_two)
        far_start();
    one = clients_open_first();
    two = clients_open();
    if (strstr(c->rules, "ST-9") || strstr(c->rules, "ST-10"))
        clients_need(TENREC_STORE_LACKS_COMPARE, "add and compare_set");
    c->run();
    expect_of(NULL);
    if (c->of_two)
        far_end();
    clients_remove_keys();
    clients_close(&one);
    clients_close(&two);
    expect_of("ST-15");
    leftover_expect_threads(before);
    leftover_expect_fds(before);
    expect_of(NULL);
    clients_end();
}

void clients_join(void)
{
    one = clients_open_first();
}

void clients_leave(void)
{
    clients_close(&one);
    clients_end();
}

/* ---- demands ---- */

void put_bytes(struct tenrec_store *s, const char *key, const void *data, size_t len)
{
    tenrec_error err;

    clients_note(key);
    expect_ok(store_set(s, key, data, len, soon(), &err), &err, "set");
}

void put(struct tenrec_store *s, const char *key, const char *value)
{
    put_bytes(s, key, value, strlen(value));
}

void holds_bytes(struct tenrec_store *s, const char *key, const void *data, size_t len)
{
    struct store_value v = { 0 };
    tenrec_error err;

    expect_ok(store_get_all(s, &key, 1, soon(), &v, NULL, &err), &err, "get");
    if (v.len != len)
        expect_fail("the value of \"%.40s\" has %zu bytes, expected %zu", key, v.len, len);
    expect_bytes(v.data, data, len, "the value of \"%.40s\"", key);
    free(v.data);
}

void holds(struct tenrec_store *s, const char *key, const char *value)
{
    struct store_value v = { 0 };
    tenrec_error err;

    expect_ok(store_get_all(s, &key, 1, soon(), &v, NULL, &err), &err, "get");
    if (v.len != strlen(value) || memcmp(v.data, value, v.len) != 0)
        expect_fail("the value of \"%.40s\" is \"%.80s\", expected \"%s\"", key, (char *)v.data,
                    value);
    free(v.data);
}

bool has(struct tenrec_store *s, const char *key)
{
    bool missing = false;
    tenrec_error err;

    expect_ok(store_check_all(s, &key, 1, soon(), &missing, &err), &err, "check");
    return !missing;
}

bool server_was_late(tenrec_status st, uint64_t until_ns)
{
    if (st != TENREC_EPEER_LOST || clock_passed(until_ns))
        return false;
    poll(NULL, 0, 1); /* a server that is gone is lost at once */
    return true;
}

tenrec_status get_by(struct tenrec_store *s, const char *const *keys, size_t n, unsigned limit_ms,
                     struct store_value *ret, bool *ret_missing, tenrec_error *err)
{
    const uint64_t until_ns = soon();
    tenrec_status st;

    do
        st = store_get_all(s, keys, n, clock_deadline_ms(limit_ms), ret, ret_missing, err);
    while (server_was_late(st, until_ns));
    return st;
}

int64_t add(struct tenrec_store *s, const char *key, int64_t delta)
{
    int64_t sum = 0;
    tenrec_error err;

    clients_need(TENREC_STORE_LACKS_COMPARE, "add");
    clients_note(key);
    expect_ok(store_add(s, key, delta, soon(), &sum, &err), &err, "add");
    return sum;
}
