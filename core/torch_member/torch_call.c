/* SPDX-License-Identifier: Apache-2.0 */
/* torch_call.c - calls of the program: operators by their schema, TorchScript functions, functions
 * of Python. */
#include "config/config.h"
#include "torch_member/member.h"

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

/* (arguments..., schema, "torch.ops.aten.name") */
static tenrec_status write_operator(struct pickler *p, const char *schema,
                                    const struct tenrec_value *args, size_t n, tenrec_error *err)
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
    for (size_t i = 0; i < n; i++)
        pickler_value(p, &args[i]);
    pickler_text(p, schema, strlen(schema));
    pickler_text(p, text, strlen(text));
    pickler_op(p, 't');
    pickler_end(p);
    return TENREC_OK;
}

/* (arguments..., is_async, "__torch__.name") */
static void write_script(struct pickler *p, const char *name, const struct tenrec_value *args,
                         size_t n)
{
    pickler_begin(p);
    pickler_op(p, '(');
    for (size_t i = 0; i < n; i++)
        pickler_value(p, &args[i]);
    pickler_bool(p, false);
    pickler_text(p, name, strlen(name));
    pickler_op(p, 't');
    pickler_end(p);
}

static tenrec_status write_python(struct pickler *p, const char *name,
                                  const struct tenrec_value *args, size_t n, tenrec_error *err)
{
    const char *dot = strrchr(name, '.');

    if (!dot || dot == name || !dot[1] || strpbrk(name, "\n\r "))
        return tenrec_fail(err, TENREC_EINVAL, "'%s' is no \"module.name\" of Python", name);
    pickler_call_begin(p, name, (size_t)(dot - name), dot + 1);
    pickler_tuple(p, args, n);
    pickler_call_end(p);
    return TENREC_OK;
}

static tenrec_status write_call(const char *function, const struct tenrec_value *args, size_t n,
                                struct tenrec_msg **ret, tenrec_error *err)
{
    const bool is_operator = strstr(function, "::") != NULL;
    const bool is_script = strncmp(function, "__torch__.", strlen("__torch__.")) == 0;
    struct pickler p = { .jit = is_operator || is_script };
    tenrec_status st = TENREC_OK;

    if (is_operator)
        st = write_operator(&p, function, args, n, err);
    else if (is_script)
        write_script(&p, function, args, n);
    else
        st = write_python(&p, function, args, n, err);
    if (st == TENREC_OK)
        st = pickler_message(&p, p.jit ? TENREC_MSG_SCRIPT_CALL : TENREC_MSG_CALL, ret, err);
    else
        pickler_finish(&p);
    if (st != TENREC_OK)
        tenrec_error_prefix(err, "call of '%s'", function);
    return st;
}

static tenrec_status check_call(struct tenrec_torch_member *m, const char *to, const char *function,
                                const struct tenrec_value *args, size_t n, int64_t *ms,
                                tenrec_error *err)
{
    bool joined;

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
    joined = m->state == TORCH_JOINED;
    pthread_mutex_unlock(&m->lock);
    return joined
               ? TENREC_OK
               : tenrec_fail(err, TENREC_ESHUTDOWN, "this process is no member of torch's group");
}

tenrec_status tenrec_torch_call_async(struct tenrec_torch_member *m, const char *to,
                                      const char *function, const struct tenrec_value *args,
                                      size_t n, int64_t ms, struct tenrec_future **ret,
                                      tenrec_error *err)
{
    struct tenrec_msg *msg;
    tenrec_peer id = -1;
    tenrec_status st = check_call(m, to, function, args, n, &ms, err);

    if (st == TENREC_OK)
        st = torch_peers_id(m, to, &id, err);
    if (st == TENREC_OK)
        st = write_call(function, args, n, &msg, err);
    return st == TENREC_OK ? torch_calls_send(m, id, function, msg, ms, ret, err) : st;
}

tenrec_status tenrec_torch_call(struct tenrec_torch_member *m, const char *to, const char *function,
                                const struct tenrec_value *args, size_t n, int64_t ms,
                                struct tenrec_value **ret, tenrec_error *err)
{
    struct tenrec_future *f;
    tenrec_status st = tenrec_torch_call_async(m, to, function, args, n, ms, &f, err);

    if (st != TENREC_OK)
        return st;
    st = tenrec_future_wait(f, TENREC_TIMEOUT_NONE, err);
    if (st == TENREC_OK && ret)
        st = tenrec_value_copy(tenrec_future_value(f), ret, err);
    tenrec_future_drop(f);
    return st;
}
