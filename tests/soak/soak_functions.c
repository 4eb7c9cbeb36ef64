/* SPDX-License-Identifier: Apache-2.0 */
/* soak_functions.c - what is called in a soak. Each notes that it ran, and answers with
 * what follows from its arguments, so that the caller can check it. */
#include "soak_functions.h"

#include "ledger.h"

#include <stdlib.h>

uint32_t mix(uint64_t x)
{
    x ^= x >> 33;
    x *= UINT64_C(0xff51afd7ed558ccd);
    x ^= x >> 33;
    return (uint32_t)x;
}

tenrec_status tensor_make(uint64_t id, int64_t count, struct tenrec_tensor **ret, tenrec_error *err)
{
    tenrec_status st = tenrec_tensor_new(TENREC_INT32, 1, &count, ret, err);

    for (int64_t i = 0; st == TENREC_OK && i < count; i++)
        ((uint32_t *)tenrec_tensor_data(*ret))[i] = mix(id + (uint64_t)i);
    return st;
}

bool tensor_is(struct tenrec_tensor *t, uint64_t id, uint32_t key)
{
    const uint32_t *v = tenrec_tensor_data(t);

    for (uint64_t i = 0; i < tenrec_tensor_count(t); i++)
        if (v[i] != (mix(id + i) ^ key))
            return false;
    return true;
}

void pattern_fill(void *to, uint64_t id, uint64_t offset, uint64_t bytes)
{
    const uint64_t first = id * UINT64_C(0x9e3779b97f4a7c15) + offset / 4;

    for (uint64_t i = 0; i < bytes / 4; i++) {
        const uint32_t v = mix(first + i);
        memcpy((char *)to + 4 * i, &v, 4);
    }
}

bool pattern_is(const void *at, uint64_t id, uint64_t offset, uint64_t bytes)
{
    const uint64_t first = id * UINT64_C(0x9e3779b97f4a7c15) + offset / 4;

    for (uint64_t i = 0; i < bytes / 4; i++) {
        const uint32_t v = mix(first + i);
        if (memcmp((const char *)at + 4 * i, &v, 4) != 0)
            return false;
    }
    return true;
}

/* "mix": an int in, an int out. */
static tenrec_status do_mix(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_value ret;
    int64_t id;
    tenrec_status st = tenrec_call_get_args(c, err, "i", &id);

    (void)arg;
    if (st != TENREC_OK)
        return st;
    ledger_note(LEDGER_EXEC, (uint64_t)id, 0, 0);
    ret = tenrec_value_int(mix((uint64_t)id));
    return tenrec_call_return(c, &ret, err);
}

/* "flip": a tensor whose sum is checked here, and one back that the caller checks. */
static tenrec_status do_flip(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_tensor *in, *out = NULL;
    struct tenrec_value ret;
    int64_t id, count;
    tenrec_status st = tenrec_call_get_args(c, err, "it", &id, &in);

    (void)arg;
    if (st != TENREC_OK)
        return st;
    ledger_note(LEDGER_EXEC, (uint64_t)id, 0, 0);
    if (!tensor_is(in, (uint64_t)id, 0)) {
        ledger_note(LEDGER_BAD, (uint64_t)id, 1, 0);
        return tenrec_fail(err, TENREC_EINVAL, "the tensor arrived as another one");
    }
    count = (int64_t)tenrec_tensor_count(in);
    st = tensor_make((uint64_t)id, count, &out, err);
    for (int64_t i = 0; st == TENREC_OK && i < count; i++)
        ((uint32_t *)tenrec_tensor_data(out))[i] ^= FLIP;
    if (st == TENREC_OK) {
        ret = tenrec_value_tensor(out);
        st = tenrec_call_return(c, &ret, err);
    }
    tenrec_tensor_drop(out);
    return st;
}

/* "make": a tensor that stays here. */
static tenrec_status do_make(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_tensor *t = NULL;
    struct tenrec_value ret;
    int64_t id, count;
    tenrec_status st = tenrec_call_get_args(c, err, "ii", &id, &count);

    (void)arg;
    if (st != TENREC_OK)
        return st;
    ledger_note(LEDGER_EXEC, (uint64_t)id, 0, 0);
    st = tensor_make((uint64_t)id, count, &t, err);
    if (st == TENREC_OK) {
        ret = tenrec_value_tensor(t);
        st = tenrec_call_return(c, &ret, err);
    }
    tenrec_tensor_drop(t);
    return st;
}

/* "look": fetches a tensor by its reference, from wherever it is. */
static tenrec_status do_look(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    const struct tenrec_call_options o = { .size = sizeof o, .timeout_ms = LOOK_MS };
    struct tenrec_value *copy = NULL, ret;
    struct tenrec_rref *r;
    int64_t id, of;
    tenrec_status st = tenrec_call_get_args(c, err, "iir", &id, &of, &r);

    (void)arg;
    if (st != TENREC_OK)
        return st;
    ledger_note(LEDGER_EXEC, (uint64_t)id, 0, 0);
    st = tenrec_rref_to_here(r, &o, &copy, err);
    if (st != TENREC_OK)
        return st;
    if (copy->type != TENREC_VALUE_TENSOR || !tensor_is(copy->u.tensor, (uint64_t)of, 0))
        ledger_note(LEDGER_BAD, (uint64_t)id, 2, 0);
    tenrec_value_drop(copy);
    ret = tenrec_value_int(mix((uint64_t)id));
    return tenrec_call_return(c, &ret, err);
}

/* "pass": calls another member, so that its thread waits in a call of its own. */
static tenrec_status do_pass(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    const struct tenrec_call_options o = { .size = sizeof o, .timeout_ms = LOOK_MS };
    struct tenrec_value *got = NULL, args, ret;
    const char *to;
    int64_t id, inner;
    tenrec_status st = tenrec_call_get_args(c, err, "is", &id, &to);

    (void)arg;
    if (st != TENREC_OK)
        return st;
    ledger_note(LEDGER_EXEC, (uint64_t)id, 0, 0);
    inner = (int64_t)ledger_next();
    args = tenrec_value_int(inner);
    ledger_note(LEDGER_START, (uint64_t)inner, 100, LOOK_MS);
    st = tenrec_rpc_sync(tenrec_call_worker(c), to, "mix", &args, 1, &o, &got, err);
    ledger_note(LEDGER_END, (uint64_t)inner, st, 0);
    if (st != TENREC_OK)
        return st;
    if (got->type != TENREC_VALUE_INT || got->u.integer != mix((uint64_t)inner))
        ledger_note(LEDGER_BAD, (uint64_t)inner, 3, 0);
    tenrec_value_drop(got);
    ret = tenrec_value_int(mix((uint64_t)id));
    return tenrec_call_return(c, &ret, err);
}

tenrec_status work_register(struct tenrec_worker *w, tenrec_error *err)
{
    static const struct {
        const char *name;
        tenrec_function_fn *fn;
        uint32_t flags;
    } all[] = {
        { "mix", do_mix, TENREC_INLINE }, { "flip", do_flip, TENREC_POOL },
        { "make", do_make, TENREC_POOL }, { "look", do_look, TENREC_POOL },
        { "pass", do_pass, TENREC_POOL },
    };
    tenrec_status st = TENREC_OK;

    for (size_t i = 0; i < sizeof all / sizeof all[0] && st == TENREC_OK; i++)
        st = tenrec_worker_register_function(w, all[i].name, all[i].fn, NULL, all[i].flags, err);
    return st;
}
