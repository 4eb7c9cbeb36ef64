/* SPDX-License-Identifier: Apache-2.0 */
/* weights_wait.c - waits for a version and its reports, and shows them. */
#include "rpc/weights/edition.h"
#include "rpc/weights/record.h"

#include "core/base/memory.h"

#include <stdlib.h>
#include <string.h>

/* The value is built in one arena, and copied. */
struct view {
    struct arena arena;
    struct tenrec_value *tensor;
    size_t n, room;
};

static tenrec_status view_add_tensor(struct view *v, const struct piece *p, tenrec_error *err)
{
    struct tenrec_value *shape = arena_new(&v->arena, p->ndim + 1, sizeof *shape);
    struct tenrec_entry *e = arena_new(&v->arena, 3, sizeof *e);

    if (!shape || !e)
        return memory_fail(err);
    for (uint32_t d = 0; d < p->ndim; d++)
        shape[d] = tenrec_value_int(p->shape[d]);
    e[0] = (struct tenrec_entry){ "name", tenrec_value_text(p->name) };
    e[1] = (struct tenrec_entry){ "dtype", tenrec_value_text(tenrec_dtype_name(p->dtype)) };
    e[2] = (struct tenrec_entry){ "shape", tenrec_value_array(shape, p->ndim) };
    v->tensor[v->n++] = tenrec_value_map(e, 3);
    return TENREC_OK;
}

static bool view_has(const struct view *v, const char *name)
{
    for (size_t i = 0; i < v->n; i++)
        if (strcmp(tenrec_value_find(&v->tensor[i], "name")->u.text, name) == 0)
            return true;
    return false;
}

/* Adds the tensors of one publisher that no other has named. */
static tenrec_status view_add_part(struct view *v, const struct tenrec_value *part,
                                   tenrec_error *err)
{
    struct piece *p;
    size_t n;
    tenrec_status st = pieces_unpack(part, &p, &n, err);

    for (size_t i = 0; i < n && st == TENREC_OK; i++) {
        struct tenrec_value *grown;
        if (view_has(v, p[i].name))
            continue;
        grown = memory_grow(v->tensor, v->n, &v->room, sizeof *grown);
        if (!grown)
            st = memory_fail(err);
        else
            st = (v->tensor = grown, view_add_tensor(v, &p[i], err));
    }
    free(p);
    return st;
}

static tenrec_status view_make(const struct tenrec_value *answer, struct tenrec_value **ret,
                               tenrec_error *err)
{
    const struct tenrec_value *parts, *holders;
    struct tenrec_entry e[3];
    struct tenrec_value all;
    struct view v = { 0 };
    int64_t version;
    tenrec_status st;

    if (answer->type != TENREC_VALUE_ARRAY)
        return tenrec_fail(err, TENREC_EPROTOCOL, "the keeper's answer is no array");
    st = tenrec_value_unpack(answer->u.array, answer->n, err, "ivv", &version, &parts, &holders);
    for (size_t i = 0; st == TENREC_OK && parts->type == TENREC_VALUE_ARRAY && i < parts->n; i++)
        st = view_add_part(&v, &parts->u.array[i], err);
    if (st == TENREC_OK) {
        e[0] = (struct tenrec_entry){ "version", tenrec_value_int(version) };
        e[1] = (struct tenrec_entry){ "tensors", tenrec_value_array(v.tensor, v.n) };
        e[2] = (struct tenrec_entry){ "holders", *holders };
        all = tenrec_value_map(e, 3);
        st = tenrec_value_copy(&all, ret, err);
    }
    free(v.tensor);
    arena_finish(&v.arena);
    return st;
}

tenrec_status tenrec_weights_wait(struct tenrec_weights *s, int64_t version, size_t reports,
                                  int64_t ms, struct tenrec_value **ret, tenrec_error *err)
{
    const struct tenrec_value args[] = { tenrec_value_int(version),
                                         tenrec_value_int((int64_t)reports) };
    tenrec_error own, *why = err ? err : &own;
    struct tenrec_value *answer = NULL;
    uint64_t until_ns;
    tenrec_status st = handle_deadline(s, ms, &until_ns, why);

    if (ret)
        *ret = NULL;
    if (st == TENREC_OK)
        st = handle_ask(s, RECORD_WAIT, 0, args, 2, until_ns, &answer, why);
    if (st == TENREC_OK && ret)
        st = view_make(answer, ret, why);
    tenrec_value_drop(answer);
    return st;
}
