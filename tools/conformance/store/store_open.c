/* SPDX-License-Identifier: Apache-2.0 */
/* store_open.c - opening and closing, and what a store tells of itself. */
#include "conformance/store/store_clients.h"

#include "conformance/case.h"
#include "core/base/clock.h"
#include "core/plugin/plugin.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define PASSWORD "s3same-0pen"

STORE_CASE(it_opens_and_closes, "ST-15 ST-17")
{
    struct tenrec_store *s = clients_open();

    clients_close(&s);
}

STORE_CASE(its_file_exports_no_other_symbol_either, "PL-1")
{
    struct stores_choice choice;
    struct plugin *b;
    tenrec_error err;

    if (!clients_choice(&choice))
        expect_not_offered("the file of a plugin");
    expect_ok(plugin_get_kind(choice.plugin->name, TENREC_PLUGIN_STORE, &b, &err), &err,
              "finding the plugin");
    case_check_exports(plugin_path(b));
    plugin_put(b);
}

static void *open_and_use(void *arg)
{
    struct tenrec_store *s = clients_open();

    (void)arg;
    add(s, "n", 1);
    tenrec_store_close(s);
    return NULL;
}

STORE_CASE(many_threads_open_at_once, "ST-17")
{
    enum { THREADS = 8 };
    pthread_t thread[THREADS];

    for (int i = 0; i < THREADS; i++)
        expect_here(pthread_create(&thread[i], NULL, open_and_use, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    expect_of("ST-2");
    expect_equal(add(one, "n", 0), THREADS, "the sum of the adds of all threads");
}

/* ---- closing ---- */

STORE_CASE(keys_stay_when_a_client_closes, "ST-15")
{
    put(one, "stays", "x");
    clients_close(&one);
    expect_of("ST-15");
    holds(two, "stays", "x");
    one = clients_open();
    holds(one, "stays", "x");
}

/* From opening to closing, with a wait that ends and a wait that does not. */
static void store_live(void)
{
    const char *keys[] = { "l1", "l2" };
    struct tenrec_store *s = clients_open();
    struct store_value value[2];
    tenrec_error err;

    put(s, "l1", "some value");
    add(s, "l2", 1);
    expect_ok(store_get_all(s, keys, 2, soon(), value, NULL, &err), &err, "get");
    store_values_free(value, 2);
    expect_ok(store_remove_all(s, keys, 2, soon(), NULL, &err), &err, "remove");
    expect_error(get_by(s, keys, 2, 1, NULL, NULL, &err), TENREC_ETIMEDOUT, &err, "get");
    tenrec_store_close(s);
}

STORE_CASE(close_leaves_nothing, "ST-15")
{
    struct leftover before;

    store_live(); /* caches of libraries are filled */
    before = leftover_count();
    for (int i = 0; i < 3; i++)
        store_live();
    leftover_expect_threads(before);
    leftover_expect_fds(before);
    leftover_expect_memory(store_live);
}

/* ---- what it tells ---- */

static void expect_a_name(const char *name)
{
    if (!name || !*name)
        expect_fail("the name is empty");
    if (strpbrk(name, "\r\n\t"))
        expect_fail("the name \"%.80s\" is not of one line", name);
}

STORE_CASE(the_name_is_of_one_line_and_stays, "ST-7")
{
    char first[200];
    struct raw r;

    expect_a_name(tenrec_store_name(one));
    raw_open_server(&r);
    if (TENREC_HAS(r.ops, name)) {
        expect_a_name(r.ops->name(&r.store));
        snprintf(first, sizeof first, "%s", r.ops->name(&r.store));
        put(two, "k", "v");
        expect(strcmp(first, r.ops->name(&r.store)) == 0,
               "the name changes while the store is open");
    }
    raw_close(&r);
}

static void tells_no_password(const char *what, const char *text)
{
    if (strstr(text, PASSWORD))
        expect_fail("%s reveals the password of the URL: \"%.200s\"", what, text);
}

/* Whether it opens or not. */
STORE_CASE(no_text_tells_a_password, "ST-7")
{
    const char *rest = strstr(clients_url(), "://") + 3, *at = strchr(rest, '@');
    tenrec_error err;
    struct raw r;
    char *url, *text;

    expect_here(asprintf(&url, "%.*suser:" PASSWORD "@%s", (int)(rest - clients_url()),
                         clients_url(), at ? at + 1 : rest) > 0);
    if (raw_open(&r, url, clock_deadline_ms(expect_ms() / 4), &err) == TENREC_OK) {
        if (TENREC_HAS(r.ops, name))
            tells_no_password("the name", r.ops->name(&r.store));
        raw_close(&r);
    } else {
        tells_no_password("the error of opening", err.text);
    }
    text = raw_log();
    tells_no_password("the log", text);
    free(text);
    free(url);
}

STORE_CASE(the_address_is_numeric, "ST-16")
{
    struct sockaddr_storage at;
    unsigned len;

    if (!*store_at(one))
        expect_not_offered("the address of a server");
    if (!relay_address(store_at(one), &at, &len))
        expect_fail("the address is \"%.80s\", expected one such as \"10.0.0.3:6379\" or "
                    "\"[fd00::1]:6379\"",
                    store_at(one));
}

/* ---- opening in vain ---- */

/* The plugin may open any URL; if it does not, it says why, and keeps nothing. */
STORE_CASE(a_refused_url_has_a_reason_and_leaves_nothing, "ST-17")
{
    enum { LONG = 5000, TIMES = 3 };
    const int scheme = (int)(strstr(clients_url(), "://") + 3 - clients_url());
    /* The first two are no name of a file that could be made; the others are for a network. */
    char *rest[] = { "", calloc(1, LONG + 1), ":99999", "[::1", "@/" };
    const size_t n = *store_at(one) ? sizeof rest / sizeof *rest : 2;
    struct leftover before = { 0 };
    int refused = 0;
    tenrec_error err;
    struct raw r;
    char *url;

    memset(rest[1], 'x', LONG);
    for (size_t i = 0; i < n; i++) {
        expect_here(asprintf(&url, "%.*s%s", scheme, clients_url(), rest[i]) > 0);
        for (int k = 0; k < TIMES; k++) {
            const uint64_t deadline_ns = clock_deadline_ms(50);

            if (raw_open(&r, url, deadline_ns, &err) == TENREC_OK) {
                raw_close(&r);
                continue;
            }
            refused++;
            if (!err.text[0])
                expect_fail("'%.40s' is refused without a text", url);
            if (k == 0) /* the first may fill a cache of a library */
                before = leftover_count();
        }
        if (refused) {
            leftover_expect_threads(before);
            leftover_expect_fds(before);
        }
        free(url);
    }
    free(rest[1]);
    if (!refused)
        expect_not_offered("a URL that is refused");
}
