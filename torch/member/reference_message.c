/* SPDX-License-Identifier: Apache-2.0 */
/* reference_message.c - the references in a message, and the names of their values. */
#include "core/base/memory.h"
#include "rpc/rref/rref_context.h"
#include "torch/member/references.h"

#include <stdlib.h>
#include <string.h>

/* ---- names ----------------------------------------------------------------------- */

struct reference_names {
    size_t function; /* where it begins in `text` */
    char text[];     /* the type and the function, each with a NUL */
};

static struct reference_names *names_new(struct bytes_slice type, const char *function)
{
    const size_t len = strlen(function);
    struct reference_names *names = memory_new(1, sizeof *names + type.len + len + 2);

    if (!names)
        return NULL;
    names->function = type.len + 1;
    if (type.len > 0)
        memcpy(names->text, type.data, type.len);
    memcpy(names->text + names->function, function, len);
    return names;
}

void reference_name(struct tenrec_rref *r, struct bytes_slice type, const char *function)
{
    struct reference_names *names = names_new(type, function), *old;

    if (!names)
        return;
    pthread_mutex_lock(&r->ctx->lock);
    old = r->names;
    r->names = names;
    pthread_mutex_unlock(&r->ctx->lock);
    free(old);
}

/* A message tells the type. What this worker knows of its own value stays, even if it learns the
 * function while the message is read. */
static void reference_name_unknown(struct tenrec_rref *r, struct bytes_slice type)
{
    struct reference_names *names = type.len > 0 ? names_new(type, "") : NULL, *old;

    if (!names)
        return;
    pthread_mutex_lock(&r->ctx->lock);
    old = r->names;
    if (old && *old->text)
        old = names; /* known: stays */
    else
        r->names = names;
    pthread_mutex_unlock(&r->ctx->lock);
    free(old);
}

/* Copies them; "" if unknown. */
static void reference_type(struct tenrec_rref *r, char ret[REFERENCE_TYPE_MAX + 1])
{
    const struct reference_names *names;

    pthread_mutex_lock(&r->ctx->lock);
    names = r->names;
    snprintf(ret, REFERENCE_TYPE_MAX + 1, "%s", names ? names->text : "");
    pthread_mutex_unlock(&r->ctx->lock);
}

void reference_function(struct tenrec_rref *r, char ret[REFERENCE_FUNCTION_MAX + 1])
{
    const struct reference_names *names;

    pthread_mutex_lock(&r->ctx->lock);
    names = r->names;
    snprintf(ret, REFERENCE_FUNCTION_MAX + 1, "%s", names ? names->text + names->function : "");
    pthread_mutex_unlock(&r->ctx->lock);
}

const char *reference_type_of(const struct tenrec_value *v)
{
    switch (v->type) {
    case TENREC_VALUE_NIL:
        return "NoneType";
    case TENREC_VALUE_BOOL:
        return "bool";
    case TENREC_VALUE_INT:
        return "int";
    case TENREC_VALUE_DOUBLE:
        return "float";
    case TENREC_VALUE_TEXT:
        return "str";
    case TENREC_VALUE_TENSOR:
        return "Tensor";
    default:
        return "";
    }
}

/* ---- written ----------------------------------------------------------------------- */

tenrec_status outgoing_add(struct outgoing *o, struct tenrec_rref *r, struct rref_fork *ret,
                           char type[REFERENCE_TYPE_MAX + 1], tenrec_error *err)
{
    struct rref_fork *grown;
    tenrec_status st;

    if (r->ctx != o->ctx)
        return tenrec_fail(err, TENREC_EINVAL,
                           "a remote reference of another group cannot be sent in torch's");
    if (o->to < 0)
        return tenrec_fail(err, TENREC_EUNSUPPORTED,
                           "remote references are sent to members of the group only");
    reference_type(r, type);
    if (!*type)
        return tenrec_fail(err, TENREC_EUNSUPPORTED,
                           "torch needs the type of the referenced value, which is unknown: name "
                           "it behind the function, as in \"__torch__.name -> Tensor\"");
    grown = memory_grow(o->fork, o->n, &o->room, sizeof *grown);
    if (!grown)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for its references");
    o->fork = grown;
    st = rref_fork_for(r, o->to, ret, err);
    if (st == TENREC_OK)
        o->fork[o->n++] = *ret;
    return st;
}

void outgoing_finish(struct outgoing *o)
{
    free(o->fork);
    *o = (struct outgoing){ o->ctx, o->to, NULL, 0, 0 };
}

void outgoing_undo(struct outgoing *o)
{
    struct rref_acts acts = { 0 };

    for (size_t i = 0; i < o->n; i++)
        rref_unfork(o->ctx, o->fork[i].id, o->fork[i].fork, &acts);
    rref_acts_run(&acts);
    outgoing_finish(o);
}

/* ---- read ---------------------------------------------------------------------------- */

tenrec_status arrivals_add(struct arrivals *in, const struct rref_fork *f, struct bytes_slice type,
                           struct tenrec_rref **ret, tenrec_error *err)
{
    struct arrivals_item *grown;
    tenrec_status st;

    if (in->from < 0)
        return tenrec_fail(err, TENREC_EUNSUPPORTED, "only members of the group have references");
    if (f->parent != in->from)
        return tenrec_fail(err, TENREC_EPROTOCOL,
                           "worker %d sends a reference that worker %d has shared", (int)in->from,
                           (int)f->parent);
    if (++in->uses > REFERENCES_MAX)
        return tenrec_fail(err, TENREC_ETOOBIG, "more than %d references", REFERENCES_MAX);
    /* A pickle writes an object once, and recalls it wherever it stands again. */
    for (size_t i = 0; i < in->n; i++)
        if (rref_id_equal(in->item[i].fork, f->fork)) {
            *ret = in->item[i].ref;
            return TENREC_OK;
        }
    grown = memory_grow(in->item, in->n, &in->room, sizeof *grown);
    if (!grown)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for its references");
    in->item = grown;
    st = rref_arrive(in->ctx, f, ret, &in->acts, err);
    if (st != TENREC_OK) {
        rref_refuse(in->ctx, f, &in->acts);
        return st;
    }
    in->item[in->n++] = (struct arrivals_item){ f->fork, *ret };
    reference_name_unknown(*ret, type);
    return TENREC_OK;
}

void arrivals_tell(struct arrivals *in)
{
    rref_acts_run(&in->acts);
}

void arrivals_finish(struct arrivals *in)
{
    rref_acts_run(&in->acts);
    for (size_t i = 0; i < in->n; i++)
        tenrec_rref_drop(in->item[i].ref);
    free(in->item);
    *in = (struct arrivals){ .ctx = in->ctx, .from = in->from };
}
