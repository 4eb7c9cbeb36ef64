/* SPDX-License-Identifier: Apache-2.0 */
/* unpickle.c - the operations of pickles, and the bytes that they hold. */
#include "torch/member/unpickle.h"

#include "core/base/text.h"

#include <string.h>

/* ---- what the bytes hold ------------------------------------------------------------ */

static const uint8_t *unpickle_take(struct unpickle *u, size_t n)
{
    const uint8_t *at = u->at;

    if ((size_t)(u->end - u->at) < n) {
        unpickle_fail(u, TENREC_EPROTOCOL, "it ends inside an operation");
        return NULL;
    }
    u->at += n;
    return at;
}

static uint64_t unpickle_take_number(struct unpickle *u, size_t bytes)
{
    const uint8_t *at = unpickle_take(u, bytes);
    uint64_t v = 0;

    for (size_t i = 0; at && i < bytes; i++)
        v |= (uint64_t)at[i] << 8 * i;
    return v;
}

/* Text behind a length of `bytes` bytes. */
static struct pyobject *unpickle_take_text(struct unpickle *u, size_t bytes,
                                           enum pyobject_kind kind)
{
    const uint64_t len = unpickle_take_number(u, bytes);
    const uint8_t *at = unpickle_take(u, (size_t)len);
    struct pyobject *o;

    if (!at)
        return NULL;
    if (kind == PY_TEXT && utf8_span(at, (size_t)len) == len && !memchr(at, 0, (size_t)len))
        return unpickle_text(u, at, (size_t)len);
    if (kind == PY_TEXT && !u->any_text)
        unpickle_fail(u, TENREC_EPROTOCOL, "a text is no UTF-8, or has a NUL");
    o = unpickle_new(u, PY_BYTES);
    if (o)
        o->u.text = (struct bytes_slice){ at, (size_t)len };
    return o;
}

/* Text up to the next line end. */
static struct pyobject *unpickle_take_line(struct unpickle *u)
{
    const uint8_t *at = u->at, *end = at < u->end ? memchr(at, '\n', (size_t)(u->end - at)) : NULL;

    if (!end || utf8_span(at, (size_t)(end - at)) != (size_t)(end - at)) {
        unpickle_fail(u, TENREC_EPROTOCOL, "a name has no end, or is no UTF-8");
        return NULL;
    }
    u->at = end + 1;
    return unpickle_text(u, at, (size_t)(end - at));
}

static struct pyobject *unpickle_int(struct unpickle *u, int64_t v)
{
    struct pyobject *o = unpickle_new(u, PY_INT);

    if (o)
        o->u.integer = v;
    return o;
}

/* Two's complement of up to eight bytes, after their number. */
static struct pyobject *unpickle_take_long(struct unpickle *u)
{
    const uint64_t bytes = unpickle_take_number(u, 1);
    uint64_t v;

    if (bytes > 8) {
        unpickle_fail(u, TENREC_EUNSUPPORTED, "an integer of more than 64 bits");
        return NULL;
    }
    v = unpickle_take_number(u, (size_t)bytes);
    if (bytes > 0 && bytes < 8 && v >> (8 * bytes - 1))
        v |= UINT64_MAX << 8 * bytes;
    return unpickle_int(u, (int64_t)v);
}

static struct pyobject *unpickle_take_float(struct unpickle *u)
{
    const uint8_t *at = unpickle_take(u, 8);
    struct pyobject *o = at ? unpickle_new(u, PY_FLOAT) : NULL;
    uint64_t v = 0;

    for (int i = 0; at && i < 8; i++)
        v = v << 8 | at[i];
    if (o)
        memcpy(&o->u.number, &v, sizeof v);
    return o;
}

static struct pyobject *unpickle_bool(struct unpickle *u, bool v)
{
    struct pyobject *o = unpickle_new(u, PY_BOOL);

    if (o)
        o->u.boolean = v;
    return o;
}

/* ---- operations ------------------------------------------------------------------------ */

/* The operations that push a value of their own; NULL for any other, and after a failure. */
static struct pyobject *unpickle_run_value(struct unpickle *u, unsigned op)
{
    switch (op) {
    case 'N':
        return unpickle_new(u, PY_NONE);
    case 0x88:
    case 0x89:
        return unpickle_bool(u, op == 0x88);
    case 'K':
        return unpickle_int(u, (int64_t)unpickle_take_number(u, 1));
    case 'M':
        return unpickle_int(u, (int64_t)unpickle_take_number(u, 2));
    case 'J':
        return unpickle_int(u, (int32_t)(uint32_t)unpickle_take_number(u, 4));
    case 0x8a:
        return unpickle_take_long(u);
    case 'G':
        return unpickle_take_float(u);
    case 0x8c:
        return unpickle_take_text(u, 1, PY_TEXT);
    case 'X':
        return unpickle_take_text(u, 4, PY_TEXT);
    case 0x8d:
        return unpickle_take_text(u, 8, PY_TEXT);
    case 'C':
        return unpickle_take_text(u, 1, PY_BYTES);
    case 'B':
        return unpickle_take_text(u, 4, PY_BYTES);
    case 0x8e:
        return unpickle_take_text(u, 8, PY_BYTES);
    case ']':
    case 0x8f:
        return unpickle_new(u, PY_LIST);
    case '}':
        return unpickle_new(u, PY_DICT);
    case ')':
        return unpickle_new(u, PY_TUPLE);
    default:
        return NULL;
    }
}

/* The operations on objects that are there. Returns false for any other. */
static bool unpickle_run_on_stack(struct unpickle *u, unsigned op)
{
    struct pyobject *second;

    switch (op) {
    case '(':
        unpickle_mark(u);
        return true;
    case 't':
        unpickle_push_tuple(u, unpickle_unmark(u));
        return true;
    case 0x85:
    case 0x86:
    case 0x87:
        unpickle_push_tuple_of(u, op - 0x84);
        return true;
    case 'a':
        unpickle_append_top(u, 1, PY_LIST);
        return true;
    case 'e':
    case 0x90:
        unpickle_append_from(u, unpickle_unmark(u), PY_LIST);
        return true;
    case 's':
        unpickle_append_top(u, 2, PY_DICT);
        return true;
    case 'u':
        unpickle_append_from(u, unpickle_unmark(u), PY_DICT);
        return true;
    case 'c':
        second = unpickle_take_line(u);
        unpickle_push_global(u, second, unpickle_take_line(u));
        return true;
    case 0x93:
        second = unpickle_pop(u);
        unpickle_push_global(u, unpickle_pop(u), second);
        return true;
    case 'R':
        second = unpickle_pop(u);
        unpickle_push(u, unpickle_reduce(u, unpickle_pop(u), second));
        return true;
    case 0x81:
        second = unpickle_pop(u);
        unpickle_push(u, unpickle_instance(u, unpickle_pop(u), second));
        return true;
    case 'b':
        second = unpickle_pop(u);
        unpickle_build(u, unpickle_top(u), second);
        return true;
    default:
        return false;
    }
}

/* The memo, and frames, whose lengths are of no use here. Returns false for any other. */
static bool unpickle_run_memo(struct unpickle *u, unsigned op)
{
    switch (op) {
    case 'q':
    case 'r':
        unpickle_memo_put(u, unpickle_take_number(u, op == 'q' ? 1 : 4));
        return true;
    case 0x94:
        unpickle_memo_put(u, u->memo.n);
        return true;
    case 'h':
    case 'j':
        unpickle_memo_get(u, unpickle_take_number(u, op == 'h' ? 1 : 4));
        return true;
    case 0x95:
        unpickle_take(u, 8);
        return true;
    default:
        return false;
    }
}

static void unpickle_run_op(struct unpickle *u, unsigned op)
{
    struct pyobject *value = unpickle_run_value(u, op);

    if (value)
        unpickle_push(u, value);
    else if (u->status == TENREC_OK && !unpickle_run_on_stack(u, op) && !unpickle_run_memo(u, op))
        unpickle_fail(u, TENREC_EUNSUPPORTED,
                      "operation 0x%02x, which plain values and tensors do not need", op);
}

static tenrec_status unpickle_run(const void *data, size_t len, bool any_text, struct arena *arena,
                                  const struct pyobject **ret, tenrec_error *err)
{
    struct unpickle u = { .start = data,
                          .at = data,
                          .end = (const uint8_t *)data + len,
                          .arena = arena,
                          .err = err,
                          .any_text = any_text,
                          .budget = arena->bytes + pyobject_budget(len) };
    const struct pyobject *o;
    uint64_t op, protocol;

    u.op = u.at;
    op = unpickle_take_number(&u, 1);
    protocol = unpickle_take_number(&u, 1);
    if (op != 0x80 || protocol < 2 || protocol > 5)
        unpickle_fail(&u, TENREC_EPROTOCOL, "expected protocol 2 to 5");
    while (u.status == TENREC_OK) {
        u.op = u.at;
        op = unpickle_take_number(&u, 1);
        if (u.status != TENREC_OK || op == '.')
            break;
        unpickle_run_op(&u, (unsigned)op);
    }
    o = u.status == TENREC_OK ? unpickle_pop(&u) : NULL;
    if (u.stack.n > 0 || u.n_marks > 0)
        unpickle_fail(&u, TENREC_EPROTOCOL, "it ends with more than one value");
    *ret = u.status == TENREC_OK ? o : NULL;
    return u.status;
}

tenrec_status unpickle(const void *data, size_t len, struct arena *arena,
                       const struct pyobject **ret, tenrec_error *err)
{
    return unpickle_run(data, len, false, arena, ret, err);
}

tenrec_status unpickle_jit(const void *data, size_t len, struct arena *arena,
                           const struct pyobject **ret, tenrec_error *err)
{
    return unpickle_run(data, len, true, arena, ret, err);
}
