/* SPDX-License-Identifier: Apache-2.0 */
#include "outside.h"

#include "base/clock.h"
#include "membership/membership.h"
#include "peer/worker.h"

#include <string.h>

enum { STORE_MS = 500 }; /* for the store to explain why a worker does not answer */

tenrec_status outside_open(struct outside *o, tenrec_error *err)
{
    struct tenrec_config *config = NULL;
    tenrec_status st = tenrec_config_load(o->config, &config, err);

    o->until_ns = clock_deadline_ms(o->limit_ms);
    if (st == TENREC_OK && o->group)
        st = tenrec_config_set(config, "worker.group", o->group, err);
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
    if (membership_absence(o->worker->membership, info.id, clock_deadline_ms(STORE_MS), text,
                           sizeof text))
        snprintf(err->text + n, sizeof err->text - n, "; %s", text);
}
