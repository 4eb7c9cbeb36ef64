/* SPDX-License-Identifier: Apache-2.0 */
/* unpickle_stack.c - the objects of a pickle that is read, on the stack, in containers and in the
 * memo. */
#include "torch/member/unpickle.h"

#include <stdarg.h>
#include <string.h>

void unpickle_fail(struct unpickle *u, tenrec_status code, const char *fmt, ...)
{
    va_list ap;

    if (u->status != TENREC_OK)
        return;
    u->status = code;
    va_start(ap, fmt);
    tenrec_vfail(u->err, code, fmt, ap);
    va_end(ap);
    tenrec_error_prefix(u->err, "pickle at byte %zu", (size_t)(u->op - u->start));
}

/* ---- objects ---------------------------------------------------------------------- */

/* Counts an object or an item. Returns false if there are too many. */
static bool unpickle_count(struct unpickle *u)
{
    if (u->status == TENREC_OK && ++u->n_objects > PYOBJECT_MAX)
        unpickle_fail(u, TENREC_ETOOBIG, "more than %u objects", PYOBJECT_MAX);
    return u->status == TENREC_OK;
}

static void *unpickle_memory(struct unpickle *u, size_t n, size_t size)
{
    void *made = NULL;

    if (n > u->budget / size || u->arena->bytes > u->budget - n * size)
        unpickle_fail(u, TENREC_ETOOBIG, "its objects take more than %zu bytes",
                      pyobject_budget((size_t)(u->end - u->start)));
    else if (!(made = arena_new(u->arena, n, size)))
        unpickle_fail(u, TENREC_ENOMEM, "no memory for its objects");
    return made;
}

struct pyobject *unpickle_new(struct unpickle *u, enum pyobject_kind kind)
{
    struct pyobject *o = unpickle_count(u) ? unpickle_memory(u, 1, sizeof *o) : NULL;

    if (o)
        o->kind = kind;
    return o;
}

struct pyobject *unpickle_text(struct unpickle *u, const void *text, size_t len)
{
    struct pyobject *o = unpickle_new(u, PY_TEXT);
    uint8_t *copy = o ? unpickle_memory(u, len + 1, 1) : NULL;

    if (!copy)
        return NULL;
    if (len > 0)
        memcpy(copy, text, len);
    o->u.text = (struct bytes_slice){ copy, len };
    return o;
}

/* Makes room for one more element behind `n`: the arena frees the former array with all. */
static void *unpickle_grow(struct unpickle *u, void *list, uint32_t n, uint32_t *room, size_t size)
{
    const uint32_t more = *room ? 2 * *room : 4;
    void *grown;

    if (n < *room)
        return list;
    grown = unpickle_memory(u, more, size);
    if (grown && n > 0)
        memcpy(grown, list, n * size);
    if (grown)
        *room = more;
    return grown;
}

void unpickle_append(struct unpickle *u, struct pyobject *o, struct pyobject *item)
{
    struct pyobject **grown;

    if (!o || !item || !unpickle_count(u))
        return;
    grown = unpickle_grow(u, o->u.item, o->n, &o->room, sizeof(struct pyobject *));
    if (!grown)
        return;
    o->u.item = grown;
    o->u.item[o->n++] = item;
}

/* ---- the stack -------------------------------------------------------------------- */

static void list_add(struct unpickle *u, struct unpickle_list *l, struct pyobject *o)
{
    struct pyobject **grown;

    if (!o || !unpickle_count(u))
        return;
    grown = unpickle_grow(u, l->item, l->n, &l->room, sizeof(struct pyobject *));
    if (!grown)
        return;
    l->item = grown;
    l->item[l->n++] = o;
}

void unpickle_push(struct unpickle *u, struct pyobject *o)
{
    list_add(u, &u->stack, o);
}

/* The lowest place on the stack that an operation may use. */
static uint32_t unpickle_floor(const struct unpickle *u)
{
    return u->n_marks > 0 ? u->mark[u->n_marks - 1] : 0;
}

struct pyobject *unpickle_pop(struct unpickle *u)
{
    if (u->stack.n <= unpickle_floor(u)) {
        unpickle_fail(u, TENREC_EPROTOCOL, "an operation lacks its operand");
        return NULL;
    }
    return u->stack.item[--u->stack.n];
}

/* The object on top, which stays. */
struct pyobject *unpickle_top(struct unpickle *u)
{
    struct pyobject *o = unpickle_pop(u);

    u->stack.n += o != NULL;
    return o;
}

void unpickle_mark(struct unpickle *u)
{
    uint32_t *grown;

    if (!unpickle_count(u))
        return;
    grown = unpickle_grow(u, u->mark, u->n_marks, &u->marks_room, sizeof *u->mark);
    if (!grown)
        return;
    u->mark = grown;
    u->mark[u->n_marks++] = u->stack.n;
}

/* Removes the topmost mark. Returns the first of the objects above it; the caller removes them. */
uint32_t unpickle_unmark(struct unpickle *u)
{
    if (u->n_marks == 0) {
        unpickle_fail(u, TENREC_EPROTOCOL, "an operation lacks its mark");
        return u->stack.n;
    }
    return u->mark[--u->n_marks];
}

/* ---- containers, names and the memo -------------------------------------------------- */

/* A tuple of the `n` objects on top, which it replaces. */
void unpickle_push_tuple(struct unpickle *u, uint32_t first)
{
    struct pyobject *tuple = unpickle_new(u, PY_TUPLE);

    for (uint32_t i = first; i < u->stack.n; i++)
        unpickle_append(u, tuple, u->stack.item[i]);
    u->stack.n = first < u->stack.n ? first : u->stack.n;
    unpickle_push(u, tuple);
}

void unpickle_push_tuple_of(struct unpickle *u, uint32_t n)
{
    if (u->stack.n - unpickle_floor(u) < n)
        unpickle_fail(u, TENREC_EPROTOCOL, "an operation lacks its operand");
    else
        unpickle_push_tuple(u, u->stack.n - n);
}

/* Appends the objects from `first` on to the container below them. */
void unpickle_append_from(struct unpickle *u, uint32_t first, enum pyobject_kind kind)
{
    const uint32_t n = u->stack.n;
    struct pyobject *to;

    u->stack.n = first;
    to = u->status == TENREC_OK ? unpickle_top(u) : NULL;
    if (to && (to->kind != kind || (kind == PY_DICT && (n - first) % 2)))
        unpickle_fail(u, TENREC_EPROTOCOL, "items for something else than a list or a dict");
    for (uint32_t i = first; i < n && u->status == TENREC_OK; i++)
        unpickle_append(u, to, u->stack.item[i]);
}

void unpickle_append_top(struct unpickle *u, uint32_t n, enum pyobject_kind kind)
{
    if (u->stack.n - unpickle_floor(u) < n)
        unpickle_fail(u, TENREC_EPROTOCOL, "an operation lacks its operand");
    else
        unpickle_append_from(u, u->stack.n - n, kind);
}

void unpickle_push_global(struct unpickle *u, struct pyobject *module, struct pyobject *name)
{
    struct pyobject *o = unpickle_new(u, PY_GLOBAL);

    if (module && name && (module->kind != PY_TEXT || name->kind != PY_TEXT))
        unpickle_fail(u, TENREC_EPROTOCOL, "a name is no text");
    unpickle_append(u, o, module);
    unpickle_append(u, o, name);
    unpickle_push(u, o);
}

void unpickle_memo_put(struct unpickle *u, uint64_t key)
{
    struct pyobject *top = unpickle_top(u);

    if (key != u->memo.n)
        unpickle_fail(u, TENREC_EPROTOCOL, "it sets memo %llu, and %u is next",
                      (unsigned long long)key, u->memo.n);
    list_add(u, &u->memo, top);
}

void unpickle_memo_get(struct unpickle *u, uint64_t key)
{
    if (key < u->memo.n)
        unpickle_push(u, u->memo.item[key]);
    else
        unpickle_fail(u, TENREC_EPROTOCOL, "it recalls memo %llu, which was not set",
                      (unsigned long long)key);
}
