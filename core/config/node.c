/* SPDX-License-Identifier: Apache-2.0 */
/* node.c - a value of the configuration and the position where it was written. */
#include "core/config/node.h"

#include "core/base/memory.h"

#include <stdlib.h>
#include <string.h>

const char *position_text(const struct position *where, char buf[POSITION_TEXT_MAX])
{
    switch (where->kind) {
    case POSITION_FILE:
        snprintf(buf, POSITION_TEXT_MAX, "%s:%u:%u", where->name, where->line, where->column);
        break;
    case POSITION_ENVIRONMENT:
        snprintf(buf, POSITION_TEXT_MAX, "environment %s", where->name);
        break;
    case POSITION_CODE:
        snprintf(buf, POSITION_TEXT_MAX, "code");
        break;
    case POSITION_SETTING:
        snprintf(buf, POSITION_TEXT_MAX, "setting");
        break;
    case POSITION_DEFAULT:
        snprintf(buf, POSITION_TEXT_MAX, "default");
        break;
    }
    return buf;
}

tenrec_status position_fail(tenrec_error *err, tenrec_status code, const struct position *where,
                            const char *fmt, ...)
{
    char buf[POSITION_TEXT_MAX];
    va_list ap;

    va_start(ap, fmt);
    tenrec_vfail(err, code, fmt, ap);
    va_end(ap);
    if (where && where->kind != POSITION_DEFAULT)
        tenrec_error_prefix(err, "%s", position_text(where, buf));
    return code;
}

struct node *node_new(enum node_kind kind, const struct position *where)
{
    struct node *node = memory_new(1, sizeof *node);

    if (node) {
        node->kind = kind;
        node->where = *where;
    }
    return node;
}

struct node *node_scalar(const char *text, enum node_style style, const struct position *where)
{
    struct node *node = node_new(NODE_SCALAR, where);

    if (!node)
        return NULL;
    node->style = style;
    node->text = memory_text(text);
    if (node->text)
        return node;
    node_drop(node);
    return NULL;
}

void node_drop(struct node *node)
{
    if (!node)
        return;
    for (size_t i = 0; i < node->n; i++)
        node_drop(node->item[i]);
    free(node->item);
    free(node->text);
    free(node->key);
    free(node);
}

tenrec_status node_add(struct node *parent, struct node *child)
{
    struct node **item;

    /* The capacity doubles: the array is full whenever `n` is a power of two. */
    if ((parent->n & (parent->n - 1)) == 0) {
        item = memory_resize(parent->item, parent->n ? parent->n * 2 : 1, sizeof(struct node *));
        if (!item) {
            node_drop(child);
            return TENREC_ENOMEM;
        }
        parent->item = item;
    }
    parent->item[parent->n++] = child;
    return TENREC_OK;
}

tenrec_status node_add_key(struct node *map, const char *key, const struct position *key_where,
                           struct node *child)
{
    char *copy = memory_text(key);

    if (!copy) {
        node_drop(child);
        return TENREC_ENOMEM;
    }
    free(child->key);
    child->key = copy;
    child->key_where = *key_where;
    return node_add(map, child);
}

struct node *node_copy(const struct node *node)
{
    struct node *copy = node_new(node->kind, &node->where);

    if (!copy)
        return NULL;
    copy->style = node->style;
    copy->key_where = node->key_where;
    if ((node->text && !(copy->text = memory_text(node->text))) ||
        (node->key && !(copy->key = memory_text(node->key))))
        goto err_drop;
    for (size_t i = 0; i < node->n; i++) {
        struct node *child = node_copy(node->item[i]);
        if (!child || node_add(copy, child) != TENREC_OK)
            goto err_drop;
    }
    return copy;

err_drop:
    node_drop(copy);
    return NULL;
}

static size_t node_find(const struct node *map, const char *key)
{
    size_t i = 0;

    while (i < map->n && strcmp(map->item[i]->key, key) != 0)
        i++;
    return i;
}

struct node *node_get(const struct node *map, const char *key)
{
    size_t i;

    if (!map || map->kind != NODE_MAP)
        return NULL;
    i = node_find(map, key);
    return i < map->n ? map->item[i] : NULL;
}

struct node *node_take(struct node *map, const char *key)
{
    struct node *node = node_get(map, key);

    if (!node)
        return NULL;
    size_t i = node_find(map, key);
    memmove(&map->item[i], &map->item[i + 1], (map->n - i - 1) * sizeof(struct node *));
    /* node_add expects room unless `n` is a power of two: the array never shrinks. */
    map->n--;
    return node;
}

bool node_is_null(const struct node *node)
{
    static const char *const nulls[] = { "", "~", "null", "Null", "NULL" };

    if (node->kind != NODE_SCALAR || node->style != NODE_PLAIN)
        return false;
    for (size_t i = 0; i < sizeof nulls / sizeof nulls[0]; i++) {
        if (strcmp(node->text, nulls[i]) == 0)
            return true;
    }
    return false;
}

const char *node_describe(const struct node *node, char *buf, size_t size)
{
    if (node->kind == NODE_LIST)
        snprintf(buf, size, "a list");
    else if (node->kind == NODE_MAP)
        snprintf(buf, size, "a map");
    else if (node_is_null(node))
        snprintf(buf, size, "nothing");
    else
        snprintf(buf, size, node->style == NODE_QUOTED ? "the text \"%s\"" : "'%s'", node->text);
    return buf;
}
