/* SPDX-License-Identifier: Apache-2.0 */
/* torch_requests.c - calls of torch's workers, and the functions that serve them. A request is read
 * and served on a thread of the pool. */
#include "torch_member/torch_request.h"

#include "base/memory.h"
#include "base/suggest.h"
#include "future/pool.h"
#include "torch_member/pyobject_value.h"

#include <stdlib.h>
#include <string.h>

struct torch_function {
    struct torch_function *next;
    tenrec_torch_function_fn *fn;
    void *arg;
    char name[]; /* NUL terminated */
};

/* ---- functions ---------------------------------------------------------------------------- */

static struct torch_function *function_find(const struct tenrec_torch_member *m, const char *name,
                                            size_t len)
{
    for (struct torch_function *f = m->function; f; f = f->next)
        if (strlen(f->name) == len && memcmp(f->name, name, len) == 0)
            return f;
    return NULL;
}

tenrec_status tenrec_torch_member_register_function(struct tenrec_torch_member *m, const char *name,
                                                    tenrec_torch_function_fn *fn, void *arg,
                                                    tenrec_error *err)
{
    const size_t len = name ? strlen(name) : 0;
    struct torch_function *f;
    bool known;

    if (len == 0 || !fn)
        return tenrec_fail(err, TENREC_EINVAL, "no %s is given", fn ? "name" : "function");
    f = memory_new(1, sizeof *f + len + 1);
    if (!f)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for function '%s'", name);
    f->fn = fn;
    f->arg = arg;
    memcpy(f->name, name, len);
    pthread_mutex_lock(&m->lock);
    known = function_find(m, name, len) != NULL;
    if (!known) {
        f->next = m->function;
        m->function = f;
    }
    pthread_mutex_unlock(&m->lock);
    if (!known)
        return TENREC_OK;
    free(f);
    return tenrec_fail(err, TENREC_EEXIST, "function '%s' is registered already", name);
}

void torch_functions_finish(struct tenrec_torch_member *m)
{
    struct torch_function *next;

    for (struct torch_function *f = m->function; f; f = next) {
        next = f->next;
        free(f);
    }
    m->function = NULL;
}

/* The function of that name; of an operator also by its name without arguments. */
static struct torch_function *request_function(struct tenrec_torch_member *m, const char *name)
{
    struct torch_function *f;

    pthread_mutex_lock(&m->lock);
    f = function_find(m, name, strlen(name));
    if (!f)
        f = function_find(m, name, strcspn(name, "("));
    pthread_mutex_unlock(&m->lock);
    return f;
}

/* ---- answers ---------------------------------------------------------------------------- */

/* Sends `msg` (taken) as the answer. */
static void request_send(struct tenrec_torch_request *r, struct tenrec_msg *msg)
{
    msg->id = r->msg->id;
    msg->route = r->msg->route;
    msg->flags |= TENREC_MSG_CONTROL;
    tenrec_chain_send(r->member->chain, r->from, msg, (struct tenrec_done){ NULL, NULL });
}

static void request_fail(struct tenrec_torch_request *r, const tenrec_error *why)
{
    const struct tenrec_torch_member *m = r->member;
    char text[sizeof why->text + TENREC_NAME_MAX + 80];
    const int len = snprintf(text, sizeof text, "On WorkerInfo(id=%d, name=%s):\n%s: %s",
                             (int)m->id, m->name, tenrec_status_name(why->code), why->text);
    struct tenrec_msg *msg = tenrec_msg_new((uint64_t)len, 0);

    if (!msg) /* the caller's timeout tells it */
        return;
    msg->type = TENREC_MSG_EXCEPTION;
    memcpy(msg->payload, text, (size_t)len);
    request_send(r, msg);
}

static void request_free(struct tenrec_torch_request *r)
{
    if (r->reply)
        r->reply->release(r->reply);
    message_tensors_finish(&r->tensors);
    arena_finish(&r->arena);
    r->msg->release(r->msg);
    free(r);
}

tenrec_status tenrec_torch_request_return(struct tenrec_torch_request *r,
                                          const struct tenrec_value *value, tenrec_error *err)
{
    struct pickler p = { .jit = r->msg->type == TENREC_MSG_SCRIPT_CALL };
    struct tenrec_msg *msg;
    tenrec_status st;

    pickler_begin(&p);
    pickler_value(&p, value);
    pickler_end(&p);
    st = pickler_message(&p, p.jit ? TENREC_MSG_SCRIPT_RET : TENREC_MSG_RET, &msg, err);
    if (st != TENREC_OK)
        return st;
    if (r->reply)
        r->reply->release(r->reply);
    r->reply = msg;
    return TENREC_OK;
}

const struct tenrec_value *tenrec_torch_request_args(const struct tenrec_torch_request *r,
                                                     size_t *ret_n)
{
    *ret_n = r->n_args;
    return r->args;
}

/* ---- reading ------------------------------------------------------------------------------ */

/* The operator, or the TorchScript function, that a tuple calls: (arguments..., schema,
 * "torch.ops.aten.x") or (arguments..., is_async, "__torch__.x"). */
static tenrec_status script_read(const struct pyobject *o, struct request_call *ret,
                                 tenrec_error *err)
{
    static const char operators[] = "torch.ops.aten.";
    const struct pyobject *last, *before;

    if (o->kind != PY_TUPLE || o->n < 2 || o->u.item[o->n - 1]->kind != PY_TEXT)
        return tenrec_fail(err, TENREC_EPROTOCOL, "malformed call: expected arguments and a name");
    last = o->u.item[o->n - 1];
    before = o->u.item[o->n - 2];
    ret->arg = o->u.item;
    ret->n = o->n - 2;
    ret->name = last->u.text;
    if (last->u.text.len < strlen(operators) ||
        memcmp(last->u.text.data, operators, strlen(operators)) != 0)
        return TENREC_OK;
    if (before->kind != PY_TEXT)
        return tenrec_fail(err, TENREC_EPROTOCOL, "malformed call: the schema is no text");
    ret->name = before->u.text;
    return TENREC_OK;
}

/* PythonUDF(function, arguments, keyword arguments) */
static tenrec_status python_read(const struct pyobject *o, struct request_call *ret,
                                 tenrec_error *err)
{
    const struct pyobject *args;

    if (!pyobject_is(o, PY_INTERNAL, "PythonUDF", 3) || o->u.item[1]->kind != PY_GLOBAL ||
        (o->u.item[2]->kind != PY_TUPLE && o->u.item[2]->kind != PY_LIST) ||
        o->u.item[3]->kind != PY_DICT)
        return tenrec_fail(err, TENREC_EPROTOCOL,
                           "malformed call: expected a function, its arguments and a dict");
    args = o->u.item[2];
    ret->arg = args->u.item;
    ret->n = args->n;
    ret->module = o->u.item[1]->u.item[0]->u.text;
    ret->name = o->u.item[1]->u.item[1]->u.text;
    if (o->u.item[3]->n > 0)
        return tenrec_fail(err, TENREC_EUNSUPPORTED,
                           "functions of this worker take no keyword arguments");
    return TENREC_OK;
}

/* A text of the module, a dot and the name; in the arena. */
static const char *request_name(struct tenrec_torch_request *r, const struct request_call *call)
{
    const size_t first = call->module.data ? call->module.len + 1 : 0;
    char *name = arena_new(&r->arena, first + call->name.len + 1, 1);

    if (name && first > 0) {
        memcpy(name, call->module.data, call->module.len);
        name[first - 1] = '.';
    }
    if (name)
        memcpy(name + first, call->name.data, call->name.len);
    return name;
}

static tenrec_status request_read(struct tenrec_torch_request *r, struct request_call *ret,
                                  const char **ret_name, tenrec_error *err)
{
    const bool script = r->msg->type == TENREC_MSG_SCRIPT_CALL;
    const uint8_t *data = r->msg->payload;
    const size_t len = (size_t)r->msg->payload_len, skip = !script;
    const struct pyobject *o;
    tenrec_status st;

    if (!script && r->msg->type != TENREC_MSG_CALL)
        return tenrec_fail(err, TENREC_EUNSUPPORTED, "message type 0x%x is not supported here",
                           (unsigned)r->msg->type);
    if (len <= skip)
        return tenrec_fail(err, TENREC_EPROTOCOL, "malformed call: it is empty");
    st = unpickle(data + skip, len - skip, &r->arena, &o, err);
    if (st == TENREC_OK)
        st = script ? script_read(o, ret, err) : python_read(o, ret, err);
    if (st == TENREC_OK && !(*ret_name = request_name(r, ret)))
        st = tenrec_fail(err, TENREC_ENOMEM, "no memory for a call");
    return st;
}

/* ---- serving ------------------------------------------------------------------------------ */

static tenrec_status request_none(struct tenrec_torch_member *m, const char *name,
                                  tenrec_error *err)
{
    struct suggestion near;

    suggest_init(&near, name);
    pthread_mutex_lock(&m->lock);
    for (const struct torch_function *f = m->function; f; f = f->next)
        suggest_try(&near, f->name);
    pthread_mutex_unlock(&m->lock);
    return tenrec_fail(err, TENREC_ENOFUNCTION, "this worker has no function '%s'%s", name,
                       suggest_hint(&near));
}

static tenrec_status request_serve(struct tenrec_torch_request *r, tenrec_error *err)
{
    struct request_call call = { .n = 0 };
    const struct torch_function *f;
    const char *name = NULL;
    bool known;
    tenrec_status st = request_read(r, &call, &name, err);

    if (st != TENREC_OK)
        return st;
    st = membership_request(r, name, &call, &known, err);
    if (known)
        return st;
    f = request_function(r->member, name);
    if (!f)
        return request_none(r->member, name, err);
    st = message_tensors_take(r->msg, &r->tensors, err);
    if (st == TENREC_OK)
        st = pyobject_values(call.arg, call.n, &r->arena, r->tensors.tensor, r->tensors.n, &r->args,
                             err);
    if (st != TENREC_OK)
        return st;
    r->n_args = call.n;
    return f->fn(r, f->arg, err);
}

static void request_run(struct pool_task *t)
{
    struct tenrec_torch_request *r = (struct tenrec_torch_request *)t;
    tenrec_error err = { .code = TENREC_OK };
    tenrec_status st = request_serve(r, &err);
    struct tenrec_value none = tenrec_value_nil();

    if (st == TENREC_OK && !r->reply)
        st = tenrec_torch_request_return(r, &none, &err);
    if (st != TENREC_OK && err.code == TENREC_OK)
        tenrec_fail(&err, st, "%s", tenrec_status_text(st));
    if (st != TENREC_OK) {
        request_fail(r, &err);
    } else {
        request_send(r, r->reply);
        r->reply = NULL;
    }
    request_free(r);
}

static void request_refuse(struct tenrec_torch_request *r)
{
    tenrec_error why;

    tenrec_fail(&why, TENREC_ESHUTDOWN, "the worker leaves the group");
    request_fail(r, &why);
    request_free(r);
}

void torch_requests_serve(struct tenrec_torch_member *m, tenrec_peer from, struct tenrec_msg *msg)
{
    struct tenrec_torch_request *r = memory_new(1, sizeof *r);

    if (!r) { /* the caller's timeout tells it */
        msg->release(msg);
        return;
    }
    r->task.fn = request_run;
    r->member = m;
    r->from = from;
    r->msg = msg;
    if (pool_run(m->pool, &r->task) != TENREC_OK)
        request_refuse(r);
}

void torch_requests_stop(struct tenrec_torch_member *m)
{
    struct pool_task *next;

    for (struct pool_task *t = pool_stop(m->pool); t; t = next) {
        next = t->next;
        request_refuse((struct tenrec_torch_request *)t);
    }
}
