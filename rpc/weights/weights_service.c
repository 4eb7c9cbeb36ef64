/* SPDX-License-Identifier: Apache-2.0 */
/* weights_service.c - weights as a service of a worker. */
#include "rpc/weights/weights.h"

#include "rpc/call/calls.h"
#include "rpc/weights/edition.h"
#include "rpc/weights/record.h"

struct weights_state {
    struct record record; /* first: record_of */
    struct editions editions;
};

static struct weights_state *weights_of(const struct tenrec_worker *w)
{
    return w->service[SERVICE_WEIGHTS];
}

struct editions *editions_of(const struct tenrec_worker *w)
{
    return &weights_of(w)->editions;
}

static tenrec_status weights_init(struct tenrec_worker *w, const struct service_config *c,
                                  tenrec_error *err)
{
    tenrec_status st;

    (void)c;
    record_init(record_of(w), w);
    editions_init(editions_of(w));
    st = record_serve(&w->calls->functions, err);
    return st == TENREC_OK ? edition_serve(&w->calls->functions, err) : st;
}

static void weights_finish(struct tenrec_worker *w)
{
    record_finish(record_of(w));
    editions_finish(editions_of(w));
}

static tenrec_status weights_start(struct tenrec_worker *w, const struct service_session *s,
                                   tenrec_error *err)
{
    tenrec_status st = editions_start(editions_of(w), err);

    (void)s;
    return st == TENREC_OK ? record_start(record_of(w), err) : st;
}

static void weights_stop(struct tenrec_worker *w, const tenrec_error *why)
{
    record_stop(record_of(w), why);
    editions_stop(editions_of(w), why);
}

static void weights_release(struct tenrec_worker *w)
{
    record_release(record_of(w));
}

static void weights_debug_info(struct tenrec_worker *w, const struct service_outlet *to)
{
    const struct record_counts c = record_count(record_of(w));

    service_put(to, "weights.num_sets", (int64_t)c.sets);
    service_put(to, "weights.num_versions", (int64_t)c.versions);
    service_put(to, "weights.num_leases", (int64_t)c.leases);
    service_put(to, "weights.num_editions", (int64_t)editions_count(editions_of(w)));
    service_put(to, "weights.version", editions_version(editions_of(w)));
}

const struct service weights_service = {
    .name = "weights",
    .size = sizeof(struct weights_state),
    .init = weights_init,
    .finish = weights_finish,
    .start = weights_start,
    .stop = weights_stop,
    .release = weights_release,
    .debug_info = weights_debug_info,
};
