/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/store/store_clients.h"

#include "core/config/config.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static struct {
    pthread_mutex_t lock;
    char text[16384];
    size_t n;
} log_of_raw = { .lock = PTHREAD_MUTEX_INITIALIZER };

static bool raw_log_enabled(const void *self, enum tenrec_log_level level)
{
    (void)self, (void)level;
    return true;
}

TENREC_PRINTF(3, 4)
static void raw_log_line(const void *self, enum tenrec_log_level level, const char *fmt, ...)
{
    const size_t size = sizeof log_of_raw.text;
    va_list ap;

    (void)self, (void)level;
    pthread_mutex_lock(&log_of_raw.lock);
    va_start(ap, fmt);
    vsnprintf(log_of_raw.text + log_of_raw.n, size - log_of_raw.n, fmt, ap);
    va_end(ap);
    log_of_raw.n = strlen(log_of_raw.text);
    pthread_mutex_unlock(&log_of_raw.lock);
}

char *raw_log(void)
{
    char *text;

    pthread_mutex_lock(&log_of_raw.lock);
    text = strdup(log_of_raw.text);
    pthread_mutex_unlock(&log_of_raw.lock);
    expect_here(text);
    return text;
}

tenrec_status raw_open(struct raw *ret, const char *url, uint64_t deadline_ns, tenrec_error *err)
{
    static const struct tenrec_store_host host = {
        .size = sizeof host,
        .abi_major = TENREC_ABI_MAJOR,
        .abi_minor = TENREC_ABI_MINOR,
        .log_enabled = raw_log_enabled,
        .log = raw_log_line,
    };
    struct tenrec_store_init in = { .size = sizeof in, .url = url, .deadline_ns = deadline_ns };
    struct stores_choice choice;
    tenrec_status st;

    *ret = (struct raw){ .store.host = &host };
    if (!clients_choice(&choice))
        expect_not_offered("the table of a plugin: this kind of store belongs to the core");
    in.options = choice.options;
    *err = (tenrec_error){ .text = "" };
    st = choice.init(&in, &ret->store, err);
    ret->ops = ret->store.ops;
    return st;
}

void raw_open_server(struct raw *ret)
{
    tenrec_error err;

    tenrec_status st = raw_open(ret, clients_url(), soon(), &err);

    secret_scrub(&err, clients_url());
    expect_ok(st, &err, "the open");
}

void raw_close(struct raw *r)
{
    r->ops->close(&r->store, soon());
}
