/* SPDX-License-Identifier: Apache-2.0 */
/* handle.c - handles of sets, their requests to the keeper, and what they withdraw. */
#include "rpc/weights/edition.h"
#include "rpc/weights/record.h"

#include "core/base/clock.h"
#include "core/base/memory.h"
#include "rpc/call/call.h"

#include <stdlib.h>
#include <string.h>

/* ---- open and close ----------------------------------------------------------------- */

static tenrec_status handle_check_name(const char *what, const char *name, tenrec_error *err)
{
    const size_t n = name ? strlen(name) : 0;

    if (n > 0 && n <= TENREC_NAME_MAX)
        return TENREC_OK;
    return tenrec_fail(err, TENREC_EINVAL, "%s: expected a name of 1 to %d bytes, got %zu", what,
                       TENREC_NAME_MAX, n);
}

tenrec_status tenrec_weights_open(struct tenrec_worker *w, const char *set, const char *keeper,
                                  struct tenrec_weights **ret, tenrec_error *err)
{
    struct tenrec_weights *s;
    tenrec_status st = handle_check_name("set", set, err);

    *ret = NULL;
    if (st == TENREC_OK)
        st = handle_check_name("keeper", keeper, err);
    if (st != TENREC_OK)
        return st;
    s = memory_new(1, sizeof *s);
    if (!s || !(s->set = memory_text(set)) || !(s->keeper = memory_text(keeper))) {
        if (s)
            free(s->set);
        free(s);
        return memory_fail(err);
    }
    s->w = w;
    s->number = editions_number(editions_of(w));
    *ret = s;
    return TENREC_OK;
}

static bool edition_is_of(const struct edition *h, const void *s)
{
    return h->of == s;
}

void tenrec_weights_close(struct tenrec_weights *s)
{
    struct edition *h;

    if (!s)
        return;
    while ((h = edition_find(editions_of(s->w), edition_is_of, s)) != NULL) {
        handle_leave(s, h);
        edition_end(h);
        edition_unlist(h);
        edition_drop(h);
    }
    free(s->set);
    free(s->keeper);
    free(s);
}

/* ---- requests ----------------------------------------------------------------------- */

tenrec_status handle_check_options(const struct tenrec_weights_options *o, uint32_t flags,
                                   tenrec_error *err)
{
    if (o && o->size < sizeof *o)
        return tenrec_fail(err, TENREC_EINVAL,
                           "weights options: size is %u, expected %zu (set it to sizeof)", o->size,
                           sizeof *o);
    if (o && (o->flags & ~flags))
        return tenrec_fail(err, TENREC_EINVAL, "weights options: unknown flags 0x%x", o->flags);
    return TENREC_OK;
}

tenrec_status handle_deadline(const struct tenrec_weights *s, int64_t ms, uint64_t *ret_ns,
                              tenrec_error *err)
{
    return call_deadline(s->w, &ms, ret_ns, err);
}

int64_t handle_left_ms(uint64_t until_ns)
{
    const int ms = clock_left_ms(until_ns);

    return ms < 0 ? TENREC_TIMEOUT_NONE : ms > 0 ? ms : 1;
}

enum { ASK_ARGS_MAX = 12 };

/* Fills the arguments that all requests have; returns the number of all. */
static size_t handle_args(const struct tenrec_weights *s, int64_t number,
                          const struct tenrec_value *args, size_t n, struct tenrec_value *all)
{
    all[0] = tenrec_value_text(s->set);
    all[1] = tenrec_value_int(editions_of(s->w)->life);
    all[2] = tenrec_value_int(s->number);
    all[3] = tenrec_value_int(number);
    for (size_t i = 0; i < n; i++)
        all[4 + i] = args[i];
    return 4 + n;
}

tenrec_status handle_ask(const struct tenrec_weights *s, const char *function, int64_t number,
                         const struct tenrec_value *args, size_t n, uint64_t until_ns,
                         struct tenrec_value **ret, tenrec_error *err)
{
    struct tenrec_call_options o = { .size = sizeof o };
    struct tenrec_value all[ASK_ARGS_MAX];
    tenrec_status st;

    n = handle_args(s, number, args, n, all);
    do { /* the keeper lets no request wait for long */
        o.timeout_ms = handle_left_ms(until_ns);
        st = call_sync(s->w, s->keeper, function, all, n, false, &o, ret, err);
    } while (st == TENREC_ETIMEDOUT && (err->flags & TENREC_ERROR_CALLEE) &&
             !clock_passed(until_ns));
    return st;
}

void handle_leave(const struct tenrec_weights *s, const struct edition *h)
{
    const struct tenrec_call_options o = { .size = sizeof o, .flags = TENREC_ONE_WAY };
    struct tenrec_value all[ASK_ARGS_MAX];
    const size_t n = handle_args(s, h->number, NULL, 0, all);
    struct tenrec_future *f = NULL;

    if (call_async(s->w, s->keeper, RECORD_LEAVE, all, n, false, &o, &f, NULL) == TENREC_OK)
        tenrec_future_drop(f);
}

/* ---- report and withdraw ------------------------------------------------------------ */

tenrec_status tenrec_weights_report(struct tenrec_weights *s, int64_t version,
                                    const tenrec_error *why, tenrec_error *err)
{
    const struct tenrec_value args[] = { tenrec_value_int(version),
                                         tenrec_value_int(why ? why->code : TENREC_OK),
                                         tenrec_value_text(why ? why->text : "") };
    tenrec_error own, *out = err ? err : &own;
    uint64_t until_ns;
    tenrec_status st = handle_deadline(s, TENREC_TIMEOUT_DEFAULT, &until_ns, out);

    return st == TENREC_OK ? handle_ask(s, RECORD_REPORT, 0, args, 3, until_ns, NULL, out) : st;
}

struct edition_key {
    const struct tenrec_weights *of;
    int64_t version;
};

static bool edition_has_key(const struct edition *h, const void *arg)
{
    const struct edition_key *key = arg;

    return h->of == key->of && h->version == key->version;
}

tenrec_status tenrec_weights_withdraw(struct tenrec_weights *s, int64_t version, int64_t ms,
                                      tenrec_error *err)
{
    const struct edition_key key = { s, version };
    tenrec_error own, *why = err ? err : &own;
    struct edition *h;
    bool found = false;
    uint64_t until_ns;
    tenrec_status st = handle_deadline(s, ms, &until_ns, why);

    while (st == TENREC_OK && version > 0 &&
           (h = edition_find(editions_of(s->w), edition_has_key, &key)) != NULL) {
        found = true;
        handle_leave(s, h);
        st = edition_end_wait(h, until_ns, why);
        edition_drop(h);
    }
    if (st == TENREC_OK && !found)
        st = tenrec_fail(why, TENREC_ENOTFOUND,
                         "this handle has neither published nor pulled version %lld of '%s'",
                         (long long)version, s->set);
    return st;
}
