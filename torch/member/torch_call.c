/* SPDX-License-Identifier: Apache-2.0 */
/* torch_call.c - calls of the program: operators by their schema, TorchScript functions, functions
 * of Python. */
#include "torch/member/member.h"
#include "torch/member/references.h"

#include "core/config/config.h"

#include <string.h>

/* The number of arguments in an operator's schema; -1: it is malformed. */
static int schema_arguments(const char *schema)
{
    const char *at = strchr(schema, '(');
    int depth = 0, n = 0;
    bool word = false; /* in an argument, of which '*' is none */

    for (; at && *at; at++) {
        const bool opens = strchr("([{", *at) != NULL, closes = strchr(")]}", *at) != NULL;

        depth += opens - closes;
        if (depth == 0 || (depth == 1 && *at == ',')) {
            n += word;
            word = false;
        } else if (!(opens && depth == 1) && !strchr(" *", *at)) {
            word = true;
        }
        if (depth == 0)
            return n;
    }
    return -1;
}

/* The arguments, and what a creation ends with. */
static void write_arguments(struct pickler *p, const struct tenrec_value *args, size_t n)
{
    for (size_t i = 0; i < n; i++)
        pickler_value(p, &args[i]);
}

static void write_creation(struct pickler *p, const struct rref_id *ids)
{
    if (ids) {
        pickler_rref_id(p, ids[0]);
        pickler_rref_id(p, ids[1]);
    }
}

/* (arguments..., schema, "torch.ops.aten.name") */
static tenrec_status write_operator(struct pickler *p, const char *schema,
                                    const struct tenrec_value *args, size_t n,
                                    const struct rref_id *ids, tenrec_error *err)
{
    static const char prefix[] = "aten::", wire[] = "torch.ops.aten.";
    const int expected = schema_arguments(schema);
    const char *name = schema + strlen(prefix);
    char text[256];

    if (strncmp(schema, prefix, strlen(prefix)) != 0 || expected < 0)
        return tenrec_fail(err, TENREC_EINVAL,
                           "'%s' is no schema of torch's, such as \"aten::neg(Tensor self) -> "
                           "Tensor\"",
                           schema);
    if (n != (size_t)expected)
        return tenrec_fail(err, TENREC_EINVAL,
                           "'%s' takes %d arguments, defaults included, got %zu", schema, expected,
                           n);
    if (strcspn(name, ".(") >= sizeof text - sizeof wire)
        return tenrec_fail(err, TENREC_EINVAL, "the name in '%s' is too long", schema);
    snprintf(text, sizeof text, "%s%.*s", wire, (int)strcspn(name, ".("), name);
    pickler_begin(p);
    pickler_op(p, '(');
    write_arguments(p, args, n);
    pickler_text(p, schema, strlen(schema));
    pickler_text(p, text, strlen(text));
    write_creation(p, ids);
    pickler_op(p, 't');
    pickler_end(p);
    return TENREC_OK;
}

/* (arguments..., is_async, "__torch__.name") */
static void write_script(struct pickler *p, const char *name, const struct tenrec_value *args,
                         size_t n, const struct rref_id *ids)
{
    const char *type = strstr(name, TORCH_CALL_TYPE);

    pickler_begin(p);
    pickler_op(p, '(');
    write_arguments(p, args, n);
    pickler_bool(p, false);
    pickler_text(p, name, type ? (size_t)(type - name) : strlen(name));
    write_creation(p, ids);
    pickler_op(p, 't');
    pickler_end(p);
}

/* PythonUDF(function, arguments, {}); of a creation (tensors..., its pickle, ids, is_async) */
static tenrec_status write_python(struct pickler *p, const char *name,
                                  const struct tenrec_value *args, size_t n,
                                  const struct rref_id *ids, tenrec_error *err)
{
    struct pickler nested = { .jit = false, .refs = p->refs }, *udf = ids ? &nested : p;
    const char *dot = strrchr(name, '.');

    if (!dot || dot == name || !dot[1] || strpbrk(name, "\n\r "))
        return tenrec_fail(err, TENREC_EINVAL, "'%s' is no \"module.name\" of Python", name);
    if (ids)
        pickler_udf_begin(udf, name, (size_t)(dot - name), dot + 1);
    else
        pickler_call_begin(udf, name, (size_t)(dot - name), dot + 1);
    pickler_tuple(udf, args, n);
    pickler_call_end(udf);
    if (!ids)
        return TENREC_OK;
    p->jit = true;
    pickler_begin(p);
    pickler_op(p, '(');
    pickler_nest(p, &nested);
    write_creation(p, ids);
    pickler_bool(p, false);
    pickler_op(p, 't');
    pickler_end(p);
    return TENREC_OK;
}

static int32_t call_type(bool script, bool remote)
{
    if (remote)
        return script ? TENREC_MSG_SCRIPT_REMOTE_CALL : TENREC_MSG_REMOTE_CALL;
    return script ? TENREC_MSG_SCRIPT_CALL : TENREC_MSG_CALL;
}

tenrec_status torch_call_write(const char *function, const struct tenrec_value *args, size_t n,
                               const struct rref_id *ids, struct outgoing *refs,
                               struct tenrec_msg **ret, tenrec_error *err)
{
    const bool is_operator = strstr(function, "::") != NULL;
    const bool is_script = strncmp(function, "__torch__.", strlen("__torch__.")) == 0;
    struct pickler p = { .jit = is_operator || is_script, .refs = refs };
    tenrec_status st = TENREC_OK;

    if (is_operator)
        st = write_operator(&p, function, args, n, ids, err);
    else if (is_script)
        write_script(&p, function, args, n, ids);
    else
        st = write_python(&p, function, args, n, ids, err);
    if (st == TENREC_OK)
        st = pickler_message(&p, call_type(is_operator || is_script, ids != NULL), ret, err);
    else
        pickler_finish(&p);
    if (st != TENREC_OK) {
        outgoing_undo(refs);
        tenrec_error_prefix(err, "call of '%s'", function);
    }
    return st;
}

tenrec_status torch_call_check(struct tenrec_torch_member *m, const char *to, const char *function,
                               const struct tenrec_value *args, size_t n, int64_t *ms,
                               tenrec_error *err)
{
    tenrec_status st;

    if (!to || !function || (!args && n > 0))
        return tenrec_fail(err, TENREC_EINVAL, "no %s is given",
                           !to         ? "worker"
                           : !function ? "function"
                                       : "argument");
    if (*ms < 0)
        return tenrec_fail(err, TENREC_EINVAL,
                           "timeout of %lld ms: it may not be negative (TENREC_TIMEOUT_NONE for "
                           "none)",
                           (long long)*ms);
    if (*ms == TENREC_TIMEOUT_DEFAULT)
        *ms = m->settings->rpc_timeout_ms == TENREC_FOREVER ? TENREC_TIMEOUT_NONE
                                                            : (int64_t)m->settings->rpc_timeout_ms;
    pthread_mutex_lock(&m->lock);
    st = torch_peers_check_joined(m, err);
    pthread_mutex_unlock(&m->lock);
    return st;
}

tenrec_status tenrec_torch_call_async(struct tenrec_torch_member *m, const char *to,
                                      const char *function, const struct tenrec_value *args,
                                      size_t n, int64_t ms, struct tenrec_future **ret,
                                      tenrec_error *err)
{
    struct outgoing refs = { .to = -1 };
    struct tenrec_msg *msg;
    tenrec_status st = torch_call_check(m, to, function, args, n, &ms, err);

    if (ret)
        *ret = NULL;
    if (st == TENREC_OK)
        st = torch_peers_id(m, to, &refs.to, err);
    if (st != TENREC_OK)
        return st;
    refs.ctx = m->refs;
    st = torch_call_write(function, args, n, NULL, &refs, &msg, err);
    return st == TENREC_OK ? torch_calls_send(m, refs.to, function, msg, &refs, ms, ret, err) : st;
}

tenrec_status torch_call_wait(struct tenrec_future *f, struct tenrec_value **ret, tenrec_error *err)
{
    tenrec_status st = tenrec_future_wait(f, TENREC_TIMEOUT_NONE, err);

    if (st == TENREC_OK && ret)
        st = tenrec_value_copy(tenrec_future_value(f), ret, err);
    tenrec_future_drop(f);
    return st;
}

tenrec_status tenrec_torch_call(struct tenrec_torch_member *m, const char *to, const char *function,
                                const struct tenrec_value *args, size_t n, int64_t ms,
                                struct tenrec_value **ret, tenrec_error *err)
{
    struct tenrec_future *f;
    tenrec_status st = tenrec_torch_call_async(m, to, function, args, n, ms, &f, err);

    if (ret)
        *ret = NULL;
    return st == TENREC_OK ? torch_call_wait(f, ret, err) : st;
}
