/* SPDX-License-Identifier: Apache-2.0 */
/* calls.c - calls to the present members of the group, whose answers are checked. */
#include "caller.h"
#include "ledger.h"
#include "soak_functions.h"

#include <inttypes.h>
#include <stdatomic.h>

enum { MEMBERS_MAX = 256, BATCH = 8, CANCEL_EACH = 4, LARGE_EACH = 64 };

static atomic_bool removed;

bool work_was_removed(void)
{
    return atomic_load(&removed);
}

bool draw_member(struct caller *c, char name[TENREC_NAME_MAX + 1])
{
    struct tenrec_worker_info all[MEMBERS_MAX];
    tenrec_error err;
    size_t n;

    if (tenrec_worker_get_infos(c->worker, all, MEMBERS_MAX, &n, &err) != TENREC_OK || n == 0 ||
        n > MEMBERS_MAX)
        return false;
    snprintf(name, TENREC_NAME_MAX + 1, "%s", all[draw(c, (uint32_t)n)].name);
    return true;
}

/* Around the limits at which tensors change their way. */
static int64_t draw_count(struct caller *c)
{
    static const int64_t count[] = { 1, 3, 100, 5000, 8192, 8193, 40000, 140000, 400000 };
    uint32_t i = draw(c, 64);

    if (c->large && draw(c, LARGE_EACH) == 0)
        return c->large;
    return count[i < 8 ? i + 1 : i % 4];
}

static int64_t draw_limit(struct caller *c)
{
    static const int64_t ms[] = { 300, 1000, 3000, 3000 };

    return ms[draw(c, 4)];
}

void begin_as(uint64_t id, enum kind kind, int64_t ms)
{
    ledger_note(LEDGER_START, id, (int32_t)kind, (uint32_t)ms);
}

uint64_t begin(enum kind kind, int64_t ms)
{
    const uint64_t id = ledger_next();

    begin_as(id, kind, ms);
    return id;
}

void end(uint64_t id, tenrec_status st, const tenrec_error *err)
{
    /* What soak.py may ask about. */
    if (st == TENREC_EREMOTE || st == TENREC_EINVAL || st == TENREC_EPROTOCOL ||
        st == TENREC_ENOMEM)
        fprintf(stderr, "call %" PRIu64 ": %s\n", id & UINT64_C(0xffffffffff), err->text);
    if (st == TENREC_EGROUP)
        atomic_store(&removed, true);
    ledger_note(LEDGER_END, id, st, 0);
}

static void check(uint64_t id, bool good)
{
    if (!good)
        ledger_note(LEDGER_BAD, id, 0, 0);
}

static bool is_int(const struct tenrec_value *v, uint64_t id)
{
    return v && v->type == TENREC_VALUE_INT && v->u.integer == mix(id);
}

static void call_mix(struct caller *c, const char *to, int64_t ms)
{
    const struct tenrec_call_options o = limited(ms);
    struct tenrec_value *ret = NULL, arg;
    uint64_t id = begin(KIND_MIX, ms);
    tenrec_error err;
    tenrec_status st;

    arg = tenrec_value_int((int64_t)id);
    st = tenrec_rpc_sync(c->worker, to, "mix", &arg, 1, &o, &ret, &err);
    check(id, st != TENREC_OK || is_int(ret, id));
    end(id, st, &err);
    tenrec_value_drop(ret);
}

static void call_flip(struct caller *c, const char *to, int64_t ms)
{
    const struct tenrec_call_options o = limited(ms);
    struct tenrec_value *ret = NULL, arg[2];
    struct tenrec_tensor *t = NULL;
    uint64_t id = ledger_next();
    int64_t count = draw_count(c);
    tenrec_error err;
    tenrec_status st = tensor_make(id, count, &t, &err);

    arg[0] = tenrec_value_int((int64_t)id);
    begin_as(id, KIND_FLIP, ms); /* a large tensor takes its time, which is not the call's */
    if (st == TENREC_OK) {
        arg[1] = tenrec_value_tensor(t);
        st = tenrec_rpc_sync(c->worker, to, "flip", arg, 2, &o, &ret, &err);
    }
    end(id, st, &err);
    check(id, st != TENREC_OK || (ret->type == TENREC_VALUE_TENSOR &&
                                  tenrec_tensor_count(ret->u.tensor) == (uint64_t)count &&
                                  tensor_is(ret->u.tensor, id, FLIP)));
    tenrec_value_drop(ret);
    tenrec_tensor_drop(t);
}

static void call_pass(struct caller *c, const char *to, const char *on, int64_t ms)
{
    const struct tenrec_call_options o = limited(ms);
    struct tenrec_value *ret = NULL, arg[2];
    uint64_t id = begin(KIND_PASS, ms);
    tenrec_error err;
    tenrec_status st;

    arg[0] = tenrec_value_int((int64_t)id);
    arg[1] = tenrec_value_text(on);
    st = tenrec_rpc_sync(c->worker, to, "pass", arg, 2, &o, &ret, &err);
    check(id, st != TENREC_OK || is_int(ret, id));
    end(id, st, &err);
    tenrec_value_drop(ret);
}

/* The end of a call of a batch; twice would be in the ledger. */
static void ended(struct tenrec_future *f, void *arg)
{
    uint64_t id = (uint64_t)(uintptr_t)arg;
    tenrec_error err;
    tenrec_status st = tenrec_future_wait(f, 0, &err);

    check(id, st != TENREC_OK || is_int(tenrec_future_value(f), id));
    end(id, st, &err);
}

/* Several at once, some of them given up. */
static void call_batch(struct caller *c, int64_t ms)
{
    const struct tenrec_call_options o = limited(ms);
    struct tenrec_future *f[BATCH];
    char to[TENREC_NAME_MAX + 1];
    tenrec_error err;
    size_t n = 0;

    for (int i = 0; i < BATCH && draw_member(c, to); i++) {
        uint64_t id = begin(KIND_BATCH, ms);
        struct tenrec_value arg = tenrec_value_int((int64_t)id);
        tenrec_status st = tenrec_rpc_async(c->worker, to, "mix", &arg, 1, &o, &f[n], &err);

        if (st == TENREC_OK)
            st = tenrec_future_add_callback(f[n++], ended, (void *)(uintptr_t)id, &err);
        if (st != TENREC_OK)
            end(id, st, &err);
    }
    for (size_t i = 0; i < n; i++) {
        if (draw(c, CANCEL_EACH * BATCH) == 0)
            tenrec_future_cancel(f[i]);
        (void)tenrec_future_wait(f[i], TENREC_TIMEOUT_NONE, &err);
        tenrec_future_drop(f[i]);
    }
}

/* A value there, fetched from there. */
static void call_ref(struct caller *c, const char *to, int64_t ms)
{
    const struct tenrec_call_options o = limited(ms);
    struct tenrec_value *copy = NULL, arg[2];
    struct tenrec_rref *r = NULL;
    uint64_t id = begin(KIND_REF, 2 * ms);
    tenrec_error err;
    tenrec_status st;

    arg[0] = tenrec_value_int((int64_t)id);
    arg[1] = tenrec_value_int(draw_count(c));
    st = tenrec_remote(c->worker, to, "make", arg, 2, &o, &r, &err);
    if (st == TENREC_OK)
        st = tenrec_rref_to_here(r, &o, &copy, &err);
    end(id, st, &err);
    check(id, st != TENREC_OK ||
                  (copy->type == TENREC_VALUE_TENSOR && tensor_is(copy->u.tensor, id, 0)));
    tenrec_value_drop(copy);
    tenrec_rref_drop(r);
}

/* A value there, that a third one fetches. */
static void call_lend(struct caller *c, const char *to, const char *third, int64_t ms)
{
    const struct tenrec_call_options o = limited(ms);
    struct tenrec_value *ret = NULL, arg[3];
    struct tenrec_rref *r = NULL;
    uint64_t of = begin(KIND_REF, ms), id;
    tenrec_error err;
    tenrec_status st;

    arg[0] = tenrec_value_int((int64_t)of);
    arg[1] = tenrec_value_int(draw_count(c));
    st = tenrec_remote(c->worker, to, "make", arg, 2, &o, &r, &err);
    end(of, st, &err);
    if (st != TENREC_OK)
        return;
    /* A call with references may also wait for these to be known. */
    id = begin(KIND_LEND, ms + LOOK_MS);
    arg[0] = tenrec_value_int((int64_t)id);
    arg[1] = tenrec_value_int((int64_t)of);
    arg[2] = tenrec_value_rref(r);
    st = tenrec_rpc_sync(c->worker, third, "look", arg, 3, &o, &ret, &err);
    check(id, st != TENREC_OK || is_int(ret, id));
    end(id, st, &err);
    tenrec_value_drop(ret);
    tenrec_rref_drop(r);
}

static bool one_call(struct caller *c)
{
    char to[TENREC_NAME_MAX + 1], other[TENREC_NAME_MAX + 1];
    int64_t ms = draw_limit(c);

    if (!draw_member(c, to) || !draw_member(c, other))
        return false;
    switch ((enum kind)draw(c, KINDS)) {
    case KIND_MIX:
        call_mix(c, to, ms);
        break;
    case KIND_FLIP:
        call_flip(c, to, ms);
        break;
    case KIND_BATCH:
        call_batch(c, ms);
        break;
    case KIND_PASS:
        call_pass(c, to, other, ms);
        break;
    case KIND_REF:
        call_ref(c, to, ms);
        break;
    case KIND_WRITE:
        call_write(c, to, ms);
        break;
    default:
        call_lend(c, to, other, ms);
        break;
    }
    return true;
}

static bool calls_work(struct caller *c)
{
    return !work_was_removed() && one_call(c) && draw(c, 4) != 0;
}

const struct caller_job calls_job = { .work = calls_work };

tenrec_status work_gather(struct tenrec_worker *w, const char *const *names, size_t n,
                          int64_t value, int64_t ms, tenrec_error *err)
{
    struct tenrec_value give = tenrec_value_int(value), *got = NULL;
    tenrec_status st = tenrec_worker_all_gather(w, &give, names, n, ms, &got, err);

    for (size_t i = 0; i < n && st == TENREC_OK; i++) {
        const struct tenrec_value *v = tenrec_value_find(got, names[i]);

        /* All give the same number in one round. */
        if (!v || v->type != TENREC_VALUE_INT || v->u.integer != value)
            st = tenrec_fail(err, TENREC_EPROTOCOL, "'%s' gave another number", names[i]);
    }
    tenrec_value_drop(got);
    return st;
}
