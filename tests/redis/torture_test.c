/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of the plugin redis fails once, or of etcd or kubernetes: no crash, no leak,
 * ENOMEM, and the next try works. Runs under with_server.py. */
#ifdef ETCD
#include "etcd.h"
#define STORE(name) etcd_##name
#define URL "TENREC_TEST_ETCD"
#elif defined(KUBERNETES)
#include "kubernetes.h"
#define URL "TENREC_TEST_KUBERNETES"
#define kubernetes_store_open kubernetes_open
#define STORE(name) kubernetes_##name
#else
#include "store.h"
#define STORE(name) redis_##name
#define URL "TENREC_TEST_REDIS"
#endif

#include "../testing.h"

#include <stdlib.h>

#define LIMIT_MS 20000

static int fail_at; /* the allocation that fails; 0: none */

static bool fails(void)
{
    return fail_at > 0 && --fail_at == 0;
}

/* The linker puts these in the place of the C library's (--wrap). */
void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);

void *__wrap_malloc(size_t n)
{
    return fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

static bool log_enabled(const void *self, enum tenrec_log_level level)
{
    (void)self, (void)level;
    return false;
}

static void no_log(const void *self, enum tenrec_log_level level, const char *fmt, ...)
{
    (void)self, (void)level, (void)fmt;
}

static const struct tenrec_store_host host = { .size = sizeof host,
                                               .log_enabled = log_enabled,
                                               .log = no_log };

static uint64_t soon(void)
{
    return clock_deadline_ms(LIMIT_MS);
}

static tenrec_status take(void *arg, uint32_t i, const void *data, size_t len, tenrec_error *err)
{
    (void)arg, (void)i, (void)data, (void)len, (void)err;
    return TENREC_OK;
}

static tenrec_status use(struct tenrec_plugin_store *s, tenrec_error *err)
{
    const char *keys[] = { "/a", "/b" }, *missing_key[] = { "/c" };
    const struct tenrec_store_ops *o = s->ops;
    bool missing[2];
    uint32_t gone;
    int64_t n;
    tenrec_status st = o->set(s, "/a", "1", 1, soon(), err);

    if (st == TENREC_OK)
        st = o->add(s, "/b", 1, soon(), &n, err);
    if (st == TENREC_OK)
        st = o->compare_set(s, "/a", "1", 1, "2", 1, soon(), take, NULL, err);
    if (st == TENREC_OK)
        st = o->get(s, keys, 2, soon(), take, NULL, missing, err);
    if (st == TENREC_OK && (st = o->get(s, missing_key, 1, clock_deadline_ms(1), take, NULL,
                                        missing, err)) == TENREC_ETIMEDOUT)
        st = TENREC_OK;
    if (st == TENREC_OK)
        st = o->check(s, keys, 2, soon(), missing, err);
    if (st == TENREC_OK)
        st = o->remove(s, keys, 2, soon(), &gone, err);
    return st == TENREC_OK ? o->num_keys(s, soon(), &n, err) : st;
}

static tenrec_status live(tenrec_error *err)
{
    /* The keeper of a lease would allocate whenever it likes. */
    const struct STORE(options) o = {
#ifdef KUBERNETES
        .name_space = "",
        .token_file = "",
        .ca_file = "",
#else
        .login = { "", "", "", "", "", "" },
#endif
        .lease_ms = TENREC_FOREVER
    };
    const struct tenrec_store_init in = {
        .size = sizeof in, .url = getenv(URL), .options = &o, .deadline_ns = soon()
    };
    struct tenrec_plugin_store s = { .host = &host };
    tenrec_status st = STORE(store_open)(&in, &s, err);

    if (st != TENREC_OK)
        return st;
    st = use(&s, err);
    s.ops->close(&s, clock_deadline_ms(1000));
    return st;
}

TEST(store_survives_the_failure_of_every_allocation)
{
    bool done = false;
    int failed = 0;

    for (int n = 1; !done; n++) {
        tenrec_error err = { 0 };
        tenrec_status st;
        fail_at = n;
        st = live(&err);
        done = fail_at > 0; /* it was never reached */
        fail_at = 0;
        if (st != TENREC_OK && st != TENREC_ENOMEM)
            fail_msg("allocation %d: %s", n, err.text);
        if (done)
            assert_int_equal(st, TENREC_OK);
        failed += st == TENREC_ENOMEM;
    }
    assert_true(failed > 10);
}
