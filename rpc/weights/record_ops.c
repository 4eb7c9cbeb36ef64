/* SPDX-License-Identifier: Apache-2.0 */
/* record_ops.c - what the keeper's functions read, change and answer. */
#include "rpc/weights/record_set.h"

#include "core/base/clock.h"
#include "core/base/memory.h"

#include <stdlib.h>
#include <string.h>

enum { LEASE_MOST_MS = 600000 };

static bool ask_return(struct record_ask *a, const struct tenrec_value *v)
{
    tenrec_call_return(a->later.call, v, &a->later.why);
    return true;
}

static bool ask_fail(struct record_ask *a, tenrec_status code, const char *why)
{
    tenrec_fail(&a->later.why, code, "version %lld of '%s' %s", (long long)a->version, a->set->name,
                why);
    return true;
}

/* ---- publish ------------------------------------------------------------------------ */

static tenrec_status publish_begin(struct record_ask *a, tenrec_error *err)
{
    if (a->version < 1 || a->publishers < 1)
        return tenrec_fail(err, TENREC_EINVAL,
                           "version %lld by %lld publishers: expected 1 or more",
                           (long long)a->version, (long long)a->publishers);
    return record_add_part(a->set, a, err);
}

/* The number of the oldest version that has readers, or is the newest. */
static int64_t record_oldest(const struct record_set *s)
{
    int64_t number = 0;

    for (const struct record_version *v = s->versions; v; v = v->next)
        number = v->visible ? v->number : number;
    return number;
}

static bool publish_ready(struct record_ask *a)
{
    const struct record_version *v = record_version_find(a->set, a->version);
    struct tenrec_value answer;

    if (!v || (!v->visible && record_newest(a->set) && record_newest(a->set)->number > a->version))
        return ask_fail(a, TENREC_EEXIST, "has been overtaken by a newer one");
    if (!v->visible)
        return false;
    record_set_sweep(a->set, tenrec_call_worker(a->later.call), clock_now_ns());
    answer = tenrec_value_int(record_oldest(a->set));
    return ask_return(a, &answer);
}

/* ---- pull --------------------------------------------------------------------------- */

/* A reader reports that a source has failed. */
static tenrec_status pull_begin(struct record_ask *a, tenrec_error *err)
{
    struct record_holder *h;

    (void)err;
    if (a->failed == 0)
        return TENREC_OK;
    h = record_holder_find(a->set, a->failed_worker, a->failed);
    if (h)
        h->failed = true;
    return TENREC_OK;
}

/* The value [pieces of each publisher]; `item` has room for all. */
static struct tenrec_value parts_value(const struct record_version *v, struct tenrec_value *item)
{
    size_t n = 0;

    for (const struct record_part *p = v ? v->parts : NULL; p; p = p->next)
        item[n++] = *p->pieces;
    return tenrec_value_array(item, n);
}

static bool pull_answer(struct record_ask *a, const struct record_version *v,
                        const struct record_holder *source)
{
    struct tenrec_value item[4] = { tenrec_value_int(v->number),
                                    tenrec_value_text(source ? source->worker : ""),
                                    tenrec_value_int(source ? source->number : 0) };
    struct tenrec_value *part = memory_new(v->n_parts + 1, sizeof *part), all;

    if (!part) {
        memory_fail(&a->later.why);
        return true;
    }
    item[3] = parts_value(v, part);
    all = tenrec_value_array(item, 4);
    ask_return(a, &all);
    free(part);
    return true;
}

static uint64_t lease_ms(const struct record_ask *a)
{
    return a->lease_ms < 0               ? 0
           : a->lease_ms < LEASE_MOST_MS ? (uint64_t)a->lease_ms
                                         : LEASE_MOST_MS;
}

/* Gives the ask a lease on the version, and a source. */
static bool pull_lease(struct record_ask *a, const struct record_version *v)
{
    struct record_holder *h = record_holder_find(a->set, a->worker, a->number);
    const bool only = v->broken || a->publisher_failed;
    const struct record_holder *source;

    if (!h)
        h = record_holder_add(a->set, a, v->number, HOLDER_PULLS);
    if (!h) {
        memory_fail(&a->later.why);
        return true;
    }
    h->version = v->number;
    h->state = HOLDER_PULLS;
    h->lease_until_ns = clock_deadline_ms(lease_ms(a));
    source = record_source(a->set, h, v, only);
    h->source = source ? source->serial : 0;
    if (!source && only) {
        record_remove(a->set, a->worker, a->number);
        return ask_fail(a, TENREC_ESTALE, "has no holder any more");
    }
    return pull_answer(a, v, source);
}

static bool pull_ready(struct record_ask *a)
{
    const struct record_version *newest = record_newest(a->set), *v = newest;

    if (a->version != TENREC_WEIGHTS_LATEST)
        v = record_version_find(a->set, a->version);
    if (newest && a->version != TENREC_WEIGHTS_LATEST && a->version <= newest->number && !v)
        return ask_fail(a, TENREC_ESTALE, "has been replaced by a newer one");
    if (!v || !v->visible || (a->version == TENREC_WEIGHTS_LATEST && v->number <= a->after))
        return false;
    return pull_lease(a, v);
}

static tenrec_status done_begin(struct record_ask *a, tenrec_error *err)
{
    struct record_holder *h = record_holder_find(a->set, a->worker, a->number);

    if (!h || h->state != HOLDER_PULLS || h->version != a->version)
        return tenrec_fail(
            err, TENREC_ESTALE,
            "the lease on version %lld of '%s' has expired: pull with a longer limit",
            (long long)a->version, a->set->name);
    h->state = HOLDER_HAS;
    record_holder_replaces(a->set, h);
    return TENREC_OK;
}

/* ---- report, wait, leave ------------------------------------------------------------ */

static tenrec_status report_begin(struct record_ask *a, tenrec_error *err)
{
    struct record_holder *h = a->set->holders;

    while (h && (h->left || h->handle != a->handle || h->version != a->version ||
                 h->state < HOLDER_HAS || strcmp(h->worker, a->worker) != 0))
        h = h->next;
    if (!h)
        return tenrec_fail(err, TENREC_ENOTFOUND, "'%s' does not have version %lld of '%s'",
                           a->worker, (long long)a->version, a->set->name);
    free(h->error);
    h->error = a->status == TENREC_OK ? NULL : memory_text(a->text);
    h->state = a->status == TENREC_OK ? HOLDER_APPLIED : HOLDER_FAILED;
    return TENREC_OK;
}

static struct tenrec_value holder_value(const struct record_holder *h, struct tenrec_entry *e)
{
    static const char *const state[] = { [HOLDER_PUBLISHES] = "publishes",
                                         [HOLDER_PULLS] = "pulls",
                                         [HOLDER_HAS] = "has",
                                         [HOLDER_APPLIED] = "applied",
                                         [HOLDER_FAILED] = "failed" };

    e[0] = (struct tenrec_entry){ "worker", tenrec_value_text(h->worker) };
    e[1] = (struct tenrec_entry){ "version", tenrec_value_int(h->version) };
    e[2] = (struct tenrec_entry){ "state", tenrec_value_text(state[h->state]) };
    e[3] = (struct tenrec_entry){ "error", tenrec_value_text(h->error ? h->error : "") };
    return tenrec_value_map(e, 4);
}

static bool wait_answer(struct record_ask *a, const struct record_version *v, int64_t number)
{
    struct tenrec_value item[3], all, *part, *holder;
    struct arena arena = { 0 };
    struct tenrec_entry *entry;
    size_t n = 0;

    for (const struct record_holder *h = a->set->holders; h; h = h->next)
        n++;
    part = arena_new(&arena, (v ? v->n_parts : 0) + 1, sizeof *part);
    holder = arena_new(&arena, n + 1, sizeof *holder);
    entry = arena_new(&arena, 4 * n + 1, sizeof *entry);
    if (part && holder && entry) {
        n = 0;
        for (const struct record_holder *h = a->set->holders; h; h = h->next, n++)
            holder[n] = holder_value(h, entry + 4 * n);
        item[0] = tenrec_value_int(number);
        item[1] = parts_value(v, part);
        item[2] = tenrec_value_array(holder, n);
        all = tenrec_value_array(item, 3);
        ask_return(a, &all);
    } else {
        memory_fail(&a->later.why);
    }
    arena_finish(&arena);
    return true;
}

static tenrec_status wait_begin(struct record_ask *a, tenrec_error *err)
{
    (void)a, (void)err;
    return TENREC_OK;
}

static bool wait_ready(struct record_ask *a)
{
    const struct record_version *newest = record_newest(a->set), *v;
    const int64_t number =
        a->version == TENREC_WEIGHTS_LATEST && newest ? newest->number : a->version;
    int64_t reports = 0;

    if (!newest || number > newest->number)
        return false;
    for (const struct record_holder *h = a->set->holders; h; h = h->next)
        reports += h->version == number && h->state >= HOLDER_APPLIED;
    if (reports < a->reports)
        return false;
    v = record_version_find(a->set, number);
    return wait_answer(a, v && v->visible ? v : NULL, number);
}

static tenrec_status leave_begin(struct record_ask *a, tenrec_error *err)
{
    (void)err;
    record_remove(a->set, a->worker, a->number);
    return TENREC_OK;
}

/* ---- arguments ---------------------------------------------------------------------- */

static tenrec_status publish_read(struct record_ask *a, const struct tenrec_value *v, size_t n,
                                  tenrec_error *err)
{
    return tenrec_value_unpack(v, n, err, "iiv", &a->version, &a->publishers, &a->pieces);
}

static tenrec_status pull_read(struct record_ask *a, const struct tenrec_value *v, size_t n,
                               tenrec_error *err)
{
    return tenrec_value_unpack(v, n, err, "iiiisib", &a->version, &a->after, &a->digest,
                               &a->lease_ms, &a->failed_worker, &a->failed, &a->publisher_failed);
}

static tenrec_status done_read(struct record_ask *a, const struct tenrec_value *v, size_t n,
                               tenrec_error *err)
{
    return tenrec_value_unpack(v, n, err, "i", &a->version);
}

static tenrec_status report_read(struct record_ask *a, const struct tenrec_value *v, size_t n,
                                 tenrec_error *err)
{
    return tenrec_value_unpack(v, n, err, "iis", &a->version, &a->status, &a->text);
}

static tenrec_status wait_read(struct record_ask *a, const struct tenrec_value *v, size_t n,
                               tenrec_error *err)
{
    return tenrec_value_unpack(v, n, err, "ii", &a->version, &a->reports);
}

static tenrec_status leave_read(struct record_ask *a, const struct tenrec_value *v, size_t n,
                                tenrec_error *err)
{
    (void)a;
    return tenrec_value_unpack(v, n, err, "");
}

const struct record_op record_ops[] = {
    { RECORD_PUBLISH, publish_read, publish_begin, publish_ready },
    { RECORD_PULL, pull_read, pull_begin, pull_ready },
    { RECORD_DONE, done_read, done_begin, NULL },
    { RECORD_REPORT, report_read, report_begin, NULL },
    { RECORD_WAIT, wait_read, wait_begin, wait_ready },
    { RECORD_LEAVE, leave_read, leave_begin, NULL },
    { NULL, NULL, NULL, NULL },
};
