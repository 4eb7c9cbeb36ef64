/* SPDX-License-Identifier: Apache-2.0 */
/* gather_end.c - the end of a gather: its values, or its error, to all that have joined. */
#include "core/base/memory.h"
#include "rpc/call/call.h"
#include "rpc/call/calls.h"
#include "rpc/future/future.h"
#include "rpc/future/worker.h"
#include "rpc/gather/gather.h"
#include "rpc/gather/gather_set.h"
#include "rpc/value/codec.h"

#include <stdlib.h>

void gather_drop(struct gather *g)
{
    for (size_t i = 0; i < g->n; i++) {
        tenrec_value_drop(g->part[i].value);
        tenrec_future_drop(g->part[i].future);
    }
    participants_drop(g->who);
    free(g);
}

void gather_part_fail(struct tenrec_worker *w, struct gather_part *p, const tenrec_error *why)
{
    if (p->future)
        future_complete_error(p->future, why);
    else
        answer_error(w, p->id, p->msg_id, &p->route, true, why);
}

static void complete_own(struct gather_part *p, const struct tenrec_value *result)
{
    struct tenrec_value *copy = NULL;
    tenrec_error why;

    if (tenrec_value_copy(result, &copy, &why) == TENREC_OK)
        future_complete_value(p->future, copy);
    else
        future_complete_error(p->future, &why);
}

void gather_parts_complete(struct tenrec_worker *w, struct gather *g,
                           const struct tenrec_value *result)
{
    struct tenrec_msg *msg = NULL;
    tenrec_error why;
    tenrec_status st = codec_write_value(result, TENREC_MSG_GATHER_RET, &msg, &why);

    for (size_t i = 0; i < g->n; i++) {
        struct gather_part *p = &g->part[i];

        if (p->future)
            complete_own(p, result);
        else if (st == TENREC_OK)
            answer_copy(w, p->id, p->msg_id, &p->route, msg);
        else
            answer_error(w, p->id, p->msg_id, &p->route, true, &why);
    }
    if (msg)
        msg->release(msg);
}

void gather_end_fail(struct tenrec_worker *w, struct gather *g, const tenrec_error *why)
{
    if (g->parent >= 0)
        gather_rise_failed(w, g->who, g->number, g->parent, why);
    for (size_t i = 0; i < g->n; i++)
        if (g->part[i].joined)
            gather_part_fail(w, &g->part[i], why);
    gather_drop(g);
}

size_t gather_number_of(const struct gather *g, size_t part)
{
    return part == 0 ? g->who->me : g->who->me * g->tree.degree + part;
}

tenrec_status gather_list(const struct gather *g, struct tenrec_value **ret_item,
                          struct tenrec_value *ret, tenrec_error *err)
{
    const size_t n = gather_tree_size(&g->tree, g->who->me);
    bool any = false;
    size_t at = 0;

    for (size_t i = 0; i < g->n; i++)
        any = any || g->part[i].value->type == TENREC_VALUE_ARRAY;
    *ret = tenrec_value_nil();
    *ret_item = NULL;
    if (!any)
        return TENREC_OK;
    if (!(*ret_item = memory_new(n, sizeof **ret_item)))
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the values of %zu workers", n);
    for (size_t i = 0; i < g->n; i++) {
        const struct tenrec_value *v = g->part[i].value;
        const size_t some = i == 0 ? 1 : gather_tree_size(&g->tree, gather_number_of(g, i));
        for (size_t k = 0; k < some; k++)
            (*ret_item)[at++] = v->type == TENREC_VALUE_ARRAY ? v->u.array[k] : tenrec_value_nil();
    }
    *ret = tenrec_value_array(*ret_item, n);
    return TENREC_OK;
}

/* Names the values of a list, that of member `i` and those below it. Returns the rest of the list.
 */
static const struct tenrec_value *gather_name(struct tenrec_worker *w, const struct gather *g,
                                              size_t i, const struct tenrec_value *list,
                                              struct tenrec_entry *ret)
{
    size_t first, n = gather_tree_children(&g->tree, i, &first);

    ret[i] = (struct tenrec_entry){ .key = peers_name(&w->peers, g->who->id[i]), .value = *list++ };
    for (size_t k = 0; k < n; k++)
        list = gather_name(w, g, first + k, list, ret);
    return list;
}

void gather_end_complete(struct tenrec_worker *w, struct gather *g)
{
    struct tenrec_entry *entry = memory_new(g->tree.n, sizeof *entry);
    struct tenrec_value list, result, *item = NULL;
    tenrec_error why;
    tenrec_status st = entry ? gather_list(g, &item, &list, &why) : memory_fail(&why);

    if (st != TENREC_OK) {
        gather_end_fail(w, g, &why);
        free(entry);
        return;
    }
    result = tenrec_value_nil();
    if (item) {
        gather_name(w, g, 0, item, entry);
        result = tenrec_value_map(entry, g->tree.n);
    }
    gather_parts_complete(w, g, &result);
    free(item);
    free(entry);
    gather_drop(g);
}
