/* SPDX-License-Identifier: Apache-2.0 */
/* store_lose.c - a server that does not run yet, is lost or does not answer: of stores with one. */
#include "conformance/store/store_clients.h"

#include "core/base/clock.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define LATE_MS 100 /* that an operation may end after its deadline */

/* Of an operation that ends in vain: short enough for all of them in one case. */
static unsigned limit_ms(void)
{
    const unsigned part = expect_ms() / 10;

    return part < 300 ? part : 300;
}

/* Where the host and port of the URL stand. */
static const char *url_host(size_t *ret_len)
{
    const char *rest = strstr(clients_url(), "://") + 3;
    const size_t n = strcspn(rest, "/");
    const char *at = memrchr(rest, '@', n), *host = at ? at + 1 : rest;

    *ret_len = (size_t)(rest + n - host);
    return host;
}

/* A relay before the server of the store, and the URL that leads through it. */
static struct relay *relay_of_clients(char **ret_url)
{
    size_t n;
    const char *host = url_host(&n);
    struct relay *r;
    char *at;

    if (strncmp(clients_url(), "tcp://", 6) == 0) {
        struct sockaddr_storage address;
        unsigned len;

        expect_here(asprintf(&at, "%.*s", (int)n, host) > 0);
        if (!relay_address(at, &address, &len))
            expect_not_offered("a numeric address in the URL");
    } else {
        expect_here(at = strdup(store_at(one)));
        if (!*at)
            expect_not_offered("the address of a server");
    }
    r = relay_new(at);
    /* A name stays: it may be in the server's certificate. */
    expect_here(
        asprintf(ret_url, "%.*s%s:%u%s", (int)(host - clients_url()), clients_url(),
                 n >= 10 && strncmp(host, "localhost:", 10) == 0 ? "localhost" : "127.0.0.1",
                 relay_port(r), host + n) > 0);
    free(at);
    return r;
}

static struct tenrec_store *open_through(const char *url)
{
    struct tenrec_store *s = NULL;
    tenrec_error err;
    tenrec_status st = clients_open_url(url, soon(), &s, &err);

    if (st == TENREC_ECONFIG || st == TENREC_EPERM) /* a certificate of another name */
        expect_not_offered(err.text);
    expect_ok(st, &err, "the open");
    return s;
}

static uint64_t late_ms(uint64_t deadline_ns)
{
    const uint64_t now_ns = clock_now_ns();

    return now_ns > deadline_ns ? (now_ns - deadline_ns) / 1000000 : 0;
}

static void expect_in_time(const char *what, uint64_t late)
{
    expect_of("ST-4");
    if (late > expect_slow(LATE_MS))
        expect_fail("%s ends %" PRIu64 " ms after its deadline, at most %d are allowed", what, late,
                    LATE_MS);
    expect_of(NULL);
}

STORE_CASE(an_open_without_a_server_ends_at_its_deadline, "ST-17 ST-4")
{
    char *url;
    struct relay *r = relay_of_clients(&url);
    const uint64_t deadline_ns = clock_deadline_ms(limit_ms());
    struct tenrec_store *s = NULL;
    tenrec_error err;

    expect_of("ST-17");
    expect_error(clients_open_url(url, deadline_ns, &s, &err), TENREC_ECONNECT, &err, "the open");
    if (clock_now_ns() < deadline_ns)
        expect_fail("the open ends before its deadline, expected that it retries");
    expect_in_time("the open", late_ms(deadline_ns));
    relay_drop(r);
    free(url);
}

static void *listen_later(void *arg)
{
    poll(NULL, 0, 150); /* the time in which no server listens */
    relay_listen(arg);
    return NULL;
}

STORE_CASE(an_open_retries_until_its_server_listens, "ST-17")
{
    char *url;
    struct relay *r = relay_of_clients(&url);
    struct tenrec_store *s;
    pthread_t thread;

    expect_here(pthread_create(&thread, NULL, listen_later, r) == 0);
    s = open_through(url);
    put(s, "open", "x");
    pthread_join(thread, NULL);
    tenrec_store_close(s);
    relay_drop(r);
    free(url);
}

/* ---- operations on a server that is gone, or that does not answer ---- */

typedef tenrec_status operation_fn(struct tenrec_store *s, uint64_t until_ns, tenrec_error *err);

static const char *const key = "k";

static tenrec_status do_get(struct tenrec_store *s, uint64_t until_ns, tenrec_error *err)
{
    return store_get_all(s, &key, 1, until_ns, NULL, NULL, err);
}

static tenrec_status do_set(struct tenrec_store *s, uint64_t until_ns, tenrec_error *err)
{
    return store_set(s, key, "v", 1, until_ns, err);
}

static tenrec_status do_add(struct tenrec_store *s, uint64_t until_ns, tenrec_error *err)
{
    return store_add(s, "n", 1, until_ns, NULL, err);
}

static tenrec_status do_compare_set(struct tenrec_store *s, uint64_t until_ns, tenrec_error *err)
{
    const struct store_value v = { (char[]){ "v" }, 1 };

    return store_compare_set(s, key, &v, &v, until_ns, NULL, err);
}

static tenrec_status do_check(struct tenrec_store *s, uint64_t until_ns, tenrec_error *err)
{
    bool missing;

    return store_check_all(s, &key, 1, until_ns, &missing, err);
}

static tenrec_status do_remove(struct tenrec_store *s, uint64_t until_ns, tenrec_error *err)
{
    return store_remove_all(s, &key, 1, until_ns, NULL, err);
}

static tenrec_status do_num_keys(struct tenrec_store *s, uint64_t until_ns, tenrec_error *err)
{
    int64_t n;

    return store_num_keys(s, until_ns, &n, err);
}

static const struct operation {
    const char *name;
    operation_fn *fn;
} operations[] = {
    { "get", do_get },           { "set", do_set },       { "add", do_add },
    { "check", do_check },       { "remove", do_remove }, { "compare_set", do_compare_set },
    { "num_keys", do_num_keys },
};

/* A machine may be late itself: an operation has a few attempts to be in time. */
static void is_lost(struct tenrec_store *s, const struct operation *o, bool may_time_out)
{
    enum { ATTEMPTS = 4 };
    uint64_t late = UINT64_MAX;

    for (int i = 0; i < ATTEMPTS && late > LATE_MS; i++) {
        const uint64_t until_ns = clock_deadline_ms(limit_ms());
        tenrec_error err = { .text = "" };
        tenrec_status st = o->fn(s, until_ns, &err);

        late = late_ms(until_ns);
        expect_of("ST-6");
        if (st != TENREC_EPEER_LOST && !(may_time_out && st == TENREC_ETIMEDOUT))
            expect_fail("%s of a store that is gone is %s, expected EPEER_LOST%s", o->name,
                        tenrec_status_name(st), may_time_out ? " or ETIMEDOUT" : "");
        if (!err.text[0])
            expect_fail("%s of a store that is gone fails without a text", o->name);
        expect_of(NULL);
    }
    expect_in_time(o->name, late);
}

static void server_lose(void (*how)(struct relay *r), bool silent)
{
    char *url;
    struct relay *r = relay_of_clients(&url);
    struct tenrec_store *s;

    relay_listen(r);
    s = open_through(url);
    put(s, "before", "x");
    clients_note(key);
    clients_note("n");
    how(r);
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        is_lost(s, &operations[i], silent && operations[i].fn != do_get);
    relay_cut(r);
    clients_close(&s);
    relay_drop(r);
    free(url);
}

STORE_CASE(a_lost_server_is_an_error_by_the_deadline, "ST-6 ST-4")
{
    server_lose(relay_cut, false);
}

STORE_CASE(a_silent_server_is_an_error_by_the_deadline, "ST-6 ST-4")
{
    server_lose(relay_freeze, true);
}
