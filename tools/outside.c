/* SPDX-License-Identifier: Apache-2.0 */
#include "outside.h"

#include "core/base/clock.h"
#include "core/config/config.h"
#include "group/meeting/membership.h"
#include "rpc/future/worker.h"
#include "rpc/worker/worker.h"
#include "secret_lookup.h"
#include "security/proof/security.h"
#include "tool.h"

#include <string.h>
#include <unistd.h>

enum { STORE_MS = 500 }; /* for the store to explain why a worker does not answer */

/* Announces the secret of the store's launcher to the worker of this process, which has no other.
 */
static tenrec_status outside_ask(const struct outside *o, const struct tenrec_config *config,
                                 tenrec_error *err)
{
    struct config_settings *settings = NULL;
    struct secret *secret = NULL;
    const char *source;
    bool written;
    tenrec_status st = secret_lookup_is_written(config, &written, err);

    if (st != TENREC_OK || written)
        return st;
    st = secret_inherit((uint32_t)clock_left_ms(o->until_ns), &secret, &source, err);
    if (st != TENREC_OK || secret) {
        secret_drop(secret);
        return st;
    }
    st = config_settings_make(config, &settings, err);
    if (st == TENREC_OK)
        st = secret_lookup_ask(o->store ? o->store : settings->init_method,
                               (uint32_t)clock_left_ms(o->until_ns), &secret, err);
    if (secret)
        st = secret_lookup_announce(secret, err);
    secret_drop(secret);
    config_settings_drop(settings);
    return st;
}

/* A file that the configuration has no use for is a mistake. */
static tenrec_status outside_check_file(const struct outside *o, const struct tenrec_config *config,
                                        tenrec_error *err)
{
    struct security *security = NULL;
    tenrec_status st;

    if (!o->secret_file)
        return TENREC_OK;
    st = security_open(config, o->until_ns, &security, err);
    if (st == TENREC_OK && !security->secret)
        st = tenrec_fail(err, TENREC_ECONFIG,
                         "--secret-file is given, but the configuration says mode '%s' (%s)",
                         security_mode_name(security->mode), security->mode_source);
    security_drop(security);
    return st;
}

static tenrec_status outside_load(const struct outside *o, struct tenrec_config **ret,
                                  tenrec_error *err)
{
    tenrec_status st = tenrec_config_load(o->config, ret, err);

    if (st == TENREC_OK && o->group)
        st = tenrec_config_set(*ret, "worker.group", o->group, err);
    if (st == TENREC_OK && o->secret_file)
        st = tenrec_config_set(*ret, "security.secret_file", o->secret_file, err);
    if (st == TENREC_OK)
        st = outside_check_file(o, *ret, err);
    return st == TENREC_OK ? outside_ask(o, *ret, err) : st;
}

static tenrec_status outside_attach(struct outside *o, tenrec_error *err)
{
    struct tenrec_config *config = NULL;
    tenrec_status st;

    st = outside_load(o, &config, err);
    if (st == TENREC_OK)
        st = tenrec_worker_new(config, &o->worker, err);
    tenrec_config_drop(config);
    if (st != TENREC_OK)
        return st;
    st = tenrec_worker_attach(o->worker, o->store, (int64_t)o->limit_ms, err);
    if (st == TENREC_EINVAL && !o->store) {
        size_t n = strlen(err->text);
        snprintf(err->text + n, sizeof err->text - n,
                 "; or give the URL of the store with --store");
    }
    return st;
}

tenrec_status outside_open(struct outside *o, tenrec_error *err)
{
    struct progress progress = { .fd = -1 };
    tenrec_status st;

    o->until_ns = clock_deadline_ms(o->limit_ms);
    if (o->command)
        progress_begin(&progress, STDERR_FILENO, o->command, "waiting for the store and the group",
                       o->limit_ms, NULL, NULL);
    st = outside_attach(o, err);
    progress_end(&progress);
    return st;
}

tenrec_status outside_open_store(struct outside *o, struct tenrec_store **ret, tenrec_error *err)
{
    struct tenrec_config *config = NULL;
    tenrec_status st;

    o->until_ns = clock_deadline_ms(o->limit_ms);
    st = outside_load(o, &config, err);
    tenrec_config_drop(config);
    return st == TENREC_OK ? tenrec_store_open(o->store, (int64_t)o->limit_ms, ret, err) : st;
}

void outside_close(struct outside *o)
{
    tenrec_worker_drop(o->worker);
}

struct tenrec_call_options outside_call(const struct outside *o)
{
    int left = clock_left_ms(o->until_ns);

    return (struct tenrec_call_options){ .size = sizeof(struct tenrec_call_options),
                                         .timeout_ms = left > 0 ? left : 1 };
}

void outside_explain(const struct outside *o, const char *name, tenrec_error *err)
{
    struct tenrec_worker_info info;
    char text[128];
    size_t n;

    if (err->code == TENREC_EPEER_UNKNOWN ||
        tenrec_get_worker_info(o->worker, name, &info, NULL) != TENREC_OK)
        return;
    tenrec_error_prefix(err, "'%s' does not answer", name);
    n = strlen(err->text);
    if (membership_absence(group_of(o->worker)->membership, info.id, clock_deadline_ms(STORE_MS),
                           text, sizeof text))
        snprintf(err->text + n, sizeof err->text - n, "; %s", text);
}
