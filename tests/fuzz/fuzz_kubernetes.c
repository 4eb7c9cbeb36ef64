/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_kubernetes.c - the answers of an API server to a store in ConfigMaps: the input is a list of
 * them, with a NUL between two, each with three digits of a status in front. */
#include "fuzz.h"

#include "kubernetes.h"

#include <stdio.h>
#include <sys/random.h>

static const char *input, *input_end;

ssize_t __wrap_getrandom(void *ret, size_t len, unsigned flags);
bool __wrap_backoff_take(struct backoff *p, uint64_t deadline_ns);
void __wrap_backoff_us(uint64_t us);
enum http_end __wrap_http_ask(struct http_pool *s, const struct http_request *r,
                              uint64_t deadline_ns, long *ret, json_t **ret_body, bool *ret_sent,
                              tenrec_error *err);

/* The identity of a store that the input makes, so that seeds can have it. */
ssize_t __wrap_getrandom(void *ret, size_t len, unsigned flags)
{
    (void)flags;
    memset(ret, 0, len);
    return (ssize_t)len;
}

/* A worker that waits has an answer at once. */
bool __wrap_backoff_take(struct backoff *p, uint64_t deadline_ns)
{
    (void)p, (void)deadline_ns;
    return input < input_end;
}

void __wrap_backoff_us(uint64_t us)
{
    (void)us;
}

static void give_lines(const struct http_request *r, const char *from, const char *end)
{
    bool more = true;

    while (more && from < end) {
        const char *line_end = memchr(from, '\n', (size_t)(end - from));
        json_t *line = json_loadb(from, (size_t)((line_end ? line_end : end) - from), 0, NULL);
        more = line && r->fn(r->arg, line);
        json_decref(line);
        from = line_end ? line_end + 1 : end;
    }
}

enum http_end __wrap_http_ask(struct http_pool *s, const struct http_request *r,
                              uint64_t deadline_ns, long *ret, json_t **ret_body, bool *ret_sent,
                              tenrec_error *err)
{
    const char *at = input, *end;

    (void)s, (void)deadline_ns;
    fuzz_expect(strncmp(r->url, "http://x:1/api/v1/namespaces/default/configmaps", 47) == 0);
    *ret_body = NULL;
    *ret_sent = false;
    if (input_end - input < 3) {
        tenrec_fail(err, TENREC_EPEER_LOST, "the input has ended");
        return HTTP_NEVER;
    }
    end = memchr(at, '\0', (size_t)(input_end - at));
    end = end ? end : input_end;
    input = end < input_end ? end + 1 : end;
    if (end - at < 3) {
        tenrec_fail(err, TENREC_EPEER_LOST, "the server is away");
        *ret_sent = true; /* it may have executed it */
        return HTTP_AGAIN;
    }
    *ret = (at[0] - '0') * 100 + (at[1] - '0') * 10 + (at[2] - '0');
    if (r->fn && *ret == 200)
        give_lines(r, at + 3, end);
    else
        *ret_body = json_loadb(at + 3, (size_t)(end - at - 3), 0, NULL);
    return HTTP_OK;
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

static tenrec_status take(void *arg, uint32_t i, const void *data, size_t len, tenrec_error *err)
{
    (void)arg, (void)i, (void)err;
    fuzz_touch(data, len);
    return TENREC_OK;
}

static void operate(struct tenrec_plugin_store *store)
{
    const struct tenrec_store_ops *o = store->ops;
    const char *const keys[] = { "/a", "/b" };
    /* The clock goes on, and waits end with the input. */
    const uint64_t deadline_ns = clock_deadline_ms(10000);
    bool missing[2];
    uint32_t n;
    int64_t number;
    tenrec_error err;

    o->set(store, "/a", "1", 1, deadline_ns, &err);
    o->add(store, "/a", 1, deadline_ns, &number, &err);
    o->compare_set(store, "/b", "1", 1, "2", 1, deadline_ns, take, NULL, &err);
    o->get(store, keys, 2, deadline_ns, take, NULL, missing, &err);
    o->check(store, keys, 2, deadline_ns, missing, &err);
    o->remove(store, keys, 2, deadline_ns, &n, &err);
    o->num_keys(store, deadline_ns, &number, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static const struct tenrec_store_host host = { .size = sizeof host,
                                                   .log_enabled = log_enabled,
                                                   .log = no_log };
    static const struct kubernetes_options options = {
        .name_space = "default", .token_file = "", .ca_file = "", .lease_ms = TENREC_FOREVER
    };
    const struct tenrec_store_init in = { .size = sizeof in,
                                          .url = "kubernetes://x:1/a",
                                          .options = &options,
                                          .deadline_ns = clock_deadline_ms(10000) };
    struct tenrec_plugin_store store = { .host = &host };
    tenrec_error err;

    input = (const char *)data;
    input_end = input + len;
    if (kubernetes_open(&in, &store, &err) != TENREC_OK)
        return 0;
    fuzz_touch(store.ops->name(&store), 1);
    operate(&store);
    store.ops->close(&store, clock_deadline_ms(1000));
    return 0;
}
