/* SPDX-License-Identifier: Apache-2.0 */
/* call_operands.c - a synchronous call with arguments and places of results by type text. */
#include <tenrec/call.h>

#include <string.h>

#include "rpc/value/type_text.h"
#include "rpc/value/value.h"

enum { OPERANDS_MAX = 64 };

struct operands {
    const char *types, *arrow, *end; /* the whole text; its > or its end; its end */
    struct tenrec_value arg[OPERANDS_MAX];
    size_t n_args, n_results;
    const struct tenrec_value *result; /* borrows: the places */
};

static bool operand_is_place(const struct tenrec_value *v)
{
    return v->type == TENREC_VALUE_RESULT && v->n != 0;
}

/* Stores NULL, 0 or false, or the value. */
static void operand_store(const struct tenrec_value *place, const struct tenrec_value *v)
{
    void *const to = (void *)(uintptr_t)place->u.bytes;

    switch ((char)place->n) {
    case 'b':
        *(bool *)to = v && v->u.boolean;
        break;
    case 'i':
        *(int64_t *)to = v ? v->u.integer : 0;
        break;
    case 'd':
        *(double *)to = !v ? 0 : v->type == TENREC_VALUE_INT ? (double)v->u.integer : v->u.number;
        break;
    case 't':
        *(struct tenrec_tensor **)to = v ? tenrec_tensor_share(v->u.tensor) : NULL;
        break;
    case 'r':
        *(struct tenrec_rref **)to = v ? handle_ops_of(v->u.rref)->share(v->u.rref) : NULL;
        break;
    default:
        *(struct tenrec_value **)to = NULL; /* the whole result is moved there */
    }
}

/* An int of C stands for a truth value, too: `true` is one. */
static tenrec_status operands_take_args(struct operands *o, const struct tenrec_value *v, size_t n,
                                        tenrec_error *err)
{
    const char *types = o->types;
    tenrec_status st;

    for (o->n_args = 0; o->n_args < n && !operand_is_place(&v[o->n_args]); o->n_args++) {
        if (o->n_args == OPERANDS_MAX)
            return tenrec_fail(err, TENREC_EINVAL, "more than %d arguments", OPERANDS_MAX);
        if (v[o->n_args].type == TENREC_VALUE_RESULT)
            return tenrec_fail(err, TENREC_EINVAL, "argument %zu %s", o->n_args + 1,
                               v[o->n_args].u.text);
        o->arg[o->n_args] = v[o->n_args];
        if (types < o->arrow && value_next_type(&types) == 'b' &&
            v[o->n_args].type == TENREC_VALUE_INT)
            o->arg[o->n_args] = tenrec_value_bool(v[o->n_args].u.integer != 0);
    }
    st = values_check(o->arg, o->n_args, "argument", o->types, o->arrow, err);
    o->result = v + o->n_args;
    o->n_results = n - o->n_args;
    return st;
}

/* Each place is of the type that the text names. */
static tenrec_status operands_check_places(const struct operands *o, tenrec_error *err)
{
    const char *types = o->arrow + (o->arrow < o->end);
    size_t n = 0;

    for (; types < o->end; n++) {
        const char letter = value_next_type(&types);

        if (!strchr("bidtrv", letter) || (letter == 'v' && o->n_results != 1))
            return tenrec_fail(err, TENREC_EINVAL,
                               "result %zu is of type '%c', expected b i d t T or r, or v alone",
                               n + 1, letter);
        if (n < o->n_results && operand_is_place(&o->result[n]) &&
            o->result[n].n != (unsigned char)letter)
            return tenrec_fail(err, TENREC_EINVAL,
                               "the variable of result %zu is of type '%c', the text says '%c'",
                               n + 1, (char)o->result[n].n, letter);
    }
    for (size_t i = 0; i < o->n_results; i++)
        if (!operand_is_place(&o->result[i]))
            return tenrec_fail(err, TENREC_EINVAL, "operand %zu is no variable for a result",
                               o->n_args + i + 1);
    return n == o->n_results
               ? TENREC_OK
               : tenrec_fail(err, TENREC_EINVAL, "the text has %zu result%s, %zu variable%s given",
                             n, n == 1 ? "" : "s", o->n_results, o->n_results == 1 ? "" : "s");
}

/* Takes `got`. */
static tenrec_status operands_store(const struct operands *o, struct tenrec_value *got,
                                    tenrec_error *err)
{
    const bool several = o->n_results > 1;
    const struct tenrec_value *v = several && got->type == TENREC_VALUE_ARRAY ? got->u.array : got;
    const size_t n = v == got ? 1 : (size_t)got->n;
    const tenrec_status st = values_check(v, n, "result", o->arrow + 1, o->end, err);

    for (size_t i = 0; i < o->n_results && st == TENREC_OK; i++) {
        operand_store(&o->result[i], &v[i]);
        if (o->result[i].n == 'v') {
            *(struct tenrec_value **)(uintptr_t)o->result[i].u.bytes = got;
            got = NULL;
        }
    }
    tenrec_value_drop(got);
    return st;
}

tenrec_status tenrec_worker_call(struct tenrec_worker *w, const char *to, const char *function,
                                 const struct tenrec_value *operand, size_t n, tenrec_error *err)
{
    struct tenrec_value *got = NULL;
    struct operands o;
    tenrec_status st;

    for (size_t i = 0; i < n; i++)
        if (operand_is_place(&operand[i]))
            operand_store(&operand[i], NULL);
    if (n == 0 || operand->type != TENREC_VALUE_TEXT)
        return tenrec_fail(err, TENREC_EINVAL, "the call of '%s' has no type text", function);
    o.types = operand->u.text;
    o.end = o.types + strlen(o.types);
    o.arrow = o.types + strcspn(o.types, ">");
    st = operands_take_args(&o, operand + 1, n - 1, err);
    if (st == TENREC_OK)
        st = operands_check_places(&o, err);
    if (st != TENREC_OK) {
        tenrec_error_prefix(err, "call of '%s'", function);
        return st;
    }
    st = tenrec_rpc_sync(w, to, function, o.arg, o.n_args, NULL, o.n_results ? &got : NULL, err);
    if (st != TENREC_OK || !o.n_results)
        return st;
    st = operands_store(&o, got, err);
    if (st != TENREC_OK)
        tenrec_error_prefix(err, "call of '%s'", function);
    return st;
}
