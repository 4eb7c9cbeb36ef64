/* SPDX-License-Identifier: Apache-2.0 */
/* value.c - reads a typed value from a node. */
#include "core/config/value.h"

#include "core/base/memory.h"
#include "core/base/text.h"
#include "core/config/config.h"
#include "core/config/node.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FOUND_MAX 120

struct type {
    size_t size, align;
};

#define TYPE(t)                                                                                    \
    {                                                                                              \
        sizeof(t), _Alignof(t)                                                                     \
    }
static const struct type types[] = {
    [TENREC_OPT_BOOL] = TYPE(bool),
    [TENREC_OPT_INT] = TYPE(int64_t),
    [TENREC_OPT_DOUBLE] = TYPE(double),
    [TENREC_OPT_DURATION] = TYPE(uint64_t),
    [TENREC_OPT_SIZE] = TYPE(uint64_t),
    [TENREC_OPT_STRING] = TYPE(const char *),
    [TENREC_OPT_LIST] = TYPE(struct tenrec_option_list),
    [TENREC_OPT_MAP] = TYPE(struct tenrec_option_map),
    [TENREC_OPT_RECORDS] = TYPE(struct tenrec_option_records),
};

size_t value_size(enum tenrec_option_type type)
{
    return (size_t)type < sizeof types / sizeof types[0] ? types[type].size : 0;
}

size_t value_align(enum tenrec_option_type type)
{
    return (size_t)type < sizeof types / sizeof types[0] ? types[type].align : 0;
}

bool value_is_scalar(enum tenrec_option_type type)
{
    return type >= TENREC_OPT_BOOL && type <= TENREC_OPT_STRING;
}

/* Adds position and context to an error of a reader. */
static tenrec_status value_at(const struct node *node, const char *context, tenrec_status st,
                              tenrec_error *err)
{
    char buf[POSITION_TEXT_MAX];

    if (st == TENREC_OK || st == TENREC_ENOMEM)
        return st;
    if (err)
        err->code = TENREC_ECONFIG;
    tenrec_error_prefix(err, "%s", context);
    if (node->where.kind != POSITION_DEFAULT)
        tenrec_error_prefix(err, "%s", position_text(&node->where, buf));
    return TENREC_ECONFIG;
}

static tenrec_status fail_type(const struct node *node, const char *context, const char *expected,
                               tenrec_error *err)
{
    char buf[FOUND_MAX];

    return position_fail(err, TENREC_ECONFIG, &node->where, "%s: expected %s, found %s", context,
                         expected, node_describe(node, buf, sizeof buf));
}

/* Return true if the option has a lower or an upper bound. Both 0: no bounds; `max` below
 * `min`: no upper bound. */
static bool has_min(const struct tenrec_option *opt)
{
    return opt->min != 0 || opt->max != 0;
}

static bool has_max(const struct tenrec_option *opt)
{
    return has_min(opt) && opt->max >= opt->min;
}

/* Prints a bound with the unit of its type. */
static const char *value_bound(const struct tenrec_option *opt, int64_t v,
                               char buf[QUANTITY_TEXT_MAX])
{
    if (opt->type == TENREC_OPT_DURATION && v >= 0)
        return quantity_print_duration((uint64_t)v, buf);
    if (opt->type == TENREC_OPT_SIZE && v >= 0)
        return quantity_print_size((uint64_t)v, buf);
    snprintf(buf, QUANTITY_TEXT_MAX, "%" PRId64, v);
    return buf;
}

static tenrec_status fail_range(const struct tenrec_option *opt, const struct node *node,
                                const char *context, tenrec_error *err)
{
    char min[QUANTITY_TEXT_MAX], max[QUANTITY_TEXT_MAX];

    value_bound(opt, opt->min, min);
    value_bound(opt, opt->max, max);
    if (has_max(opt))
        return position_fail(err, TENREC_ECONFIG, &node->where, "%s: expected %s to %s, found '%s'",
                             context, min, max, node->text);
    return position_fail(err, TENREC_ECONFIG, &node->where, "%s: expected at least %s, found '%s'",
                         context, min, node->text);
}

static bool in_range(const struct tenrec_option *opt, const union tenrec_option_value *v)
{
    switch (opt->type) {
    case TENREC_OPT_INT:
        return (!has_min(opt) || v->i >= opt->min) && (!has_max(opt) || v->i <= opt->max);
    case TENREC_OPT_DOUBLE:
        return (!has_min(opt) || v->d >= (double)opt->min) &&
               (!has_max(opt) || v->d <= (double)opt->max);
    case TENREC_OPT_DURATION:
    case TENREC_OPT_SIZE: /* the same member of the union; neither is ever negative */
        return (!has_min(opt) || opt->min <= 0 || v->ms >= (uint64_t)opt->min) &&
               (!has_max(opt) || opt->max < 0 || v->ms <= (uint64_t)opt->max);
    default:
        return true;
    }
}

static bool is_choice(const char *choices, const char *text)
{
    size_t len = strlen(text);

    for (const char *p = choices; *p; p += p[strcspn(p, "|")] ? strcspn(p, "|") + 1 : strlen(p)) {
        if (strcspn(p, "|") == len && strncmp(p, text, len) == 0)
            return true;
    }
    return false;
}

static tenrec_status check_choice(const struct tenrec_option *opt, const char *text,
                                  const struct position *where, const char *context,
                                  tenrec_error *err)
{
    struct suggestion near;
    char list[160];
    size_t n = 0;

    if (!opt->choices || is_choice(opt->choices, text))
        return TENREC_OK;
    suggest_init(&near, text);
    suggest_try_choices(&near, opt->choices);
    for (const char *p = opt->choices; *p && n + 3 < sizeof list; p++) {
        list[n++] = *p == '|' ? ',' : *p;
        if (*p == '|')
            list[n++] = ' ';
    }
    list[n] = '\0';
    /* A list that does not fit is left out where there is a hint. */
    if (n + 3 >= sizeof list && suggest_name(&near))
        return position_fail(err, TENREC_ECONFIG, where, "%s: '%s' is not known%s", context, text,
                             suggest_guess(&near));
    return position_fail(err, TENREC_ECONFIG, where, "%s: expected one of %s%s, found '%s'%s",
                         context, list, n + 3 >= sizeof list ? "..." : "", text,
                         suggest_guess(&near));
}

static tenrec_status read_bool(const struct node *node, const char *context, bool *ret,
                               tenrec_error *err)
{
    bool yes = strcmp(node->text, "true") == 0, no = strcmp(node->text, "false") == 0;

    if (node->style == NODE_QUOTED || (!yes && !no))
        return fail_type(node, context, "true or false", err);
    *ret = yes;
    return TENREC_OK;
}

static tenrec_status read_string(const struct tenrec_option *opt, const struct node *node,
                                 const char *context, struct arena *arena, const char **ret,
                                 tenrec_error *err)
{
    tenrec_status st = check_choice(opt, node->text, &node->where, context, err);

    if (st != TENREC_OK)
        return st;
    *ret = arena_text(arena, node->text);
    return *ret ? TENREC_OK : memory_fail(err);
}

static tenrec_status read_scalar(const struct tenrec_option *opt, const struct node *node,
                                 const char *context, struct arena *arena,
                                 union tenrec_option_value *ret, tenrec_error *err)
{
    static const char *const expected[] = {
        [TENREC_OPT_BOOL] = "true or false",
        [TENREC_OPT_INT] = "an integer",
        [TENREC_OPT_DOUBLE] = "a number",
        [TENREC_OPT_DURATION] = "a duration such as 250ms",
        [TENREC_OPT_SIZE] = "a size such as 64KiB",
        [TENREC_OPT_STRING] = "text",
    };
    tenrec_status st = TENREC_OK;
    bool number = opt->type == TENREC_OPT_INT || opt->type == TENREC_OPT_DOUBLE;

    if (node->kind != NODE_SCALAR || node_is_null(node) || (number && node->style == NODE_QUOTED))
        return fail_type(node, context, expected[opt->type], err);
    switch (opt->type) {
    case TENREC_OPT_BOOL:
        return read_bool(node, context, &ret->b, err);
    case TENREC_OPT_STRING:
        return read_string(opt, node, context, arena, &ret->s, err);
    case TENREC_OPT_INT:
        st = quantity_int(node->text, &ret->i, err);
        break;
    case TENREC_OPT_DOUBLE:
        st = quantity_double(node->text, &ret->d, err);
        break;
    case TENREC_OPT_DURATION:
        st = quantity_duration(node->text, opt->flags & TENREC_OPT_PLAIN_SECONDS, &ret->ms, err);
        break;
    case TENREC_OPT_SIZE:
        st = quantity_size(node->text, &ret->bytes, err);
        break;
    default:
        return fail_type(node, context, "a type that this version supports", err);
    }
    st = value_at(node, context, st, err);
    if (st == TENREC_OK && !in_range(opt, ret))
        st = fail_range(opt, node, context, err);
    return st;
}

static tenrec_status read_list(const struct tenrec_option *opt, const struct node *node,
                               const char *context, struct arena *arena,
                               struct tenrec_option_list *ret, tenrec_error *err)
{
    struct tenrec_option item = *opt;
    union tenrec_option_value *v;

    if (node->kind != NODE_LIST)
        return fail_type(node, context, "a list such as [a, b]", err);
    item.type = opt->item;
    v = arena_new(arena, node->n ? node->n : 1, sizeof *v);
    if (!v)
        return memory_fail(err);
    for (size_t i = 0; i < node->n; i++) {
        tenrec_status st = read_scalar(&item, node->item[i], context, arena, &v[i], err);
        if (st != TENREC_OK)
            return st;
    }
    ret->v = v;
    ret->n = node->n;
    return TENREC_OK;
}

static tenrec_status read_map(const struct tenrec_option *opt, const struct node *node,
                              const char *context, struct arena *arena,
                              struct tenrec_option_map *ret, tenrec_error *err)
{
    struct tenrec_option item = *opt;
    struct tenrec_option_pair *v;

    if (node->kind != NODE_MAP)
        return fail_type(node, context, "a map such as {key: value}", err);
    item.type = opt->item;
    item.choices = NULL; /* these hold for the keys */
    v = arena_new(arena, node->n ? node->n : 1, sizeof *v);
    if (!v)
        return memory_fail(err);
    for (size_t i = 0; i < node->n; i++) {
        const struct node *child = node->item[i];
        char inner[VALUE_CONTEXT_MAX];
        tenrec_status st = check_choice(opt, child->key, &child->key_where, context, err);
        if (st != TENREC_OK)
            return st;
        snprintf(inner, sizeof inner, "%s, key '%s'", context, child->key);
        st = read_scalar(&item, child, inner, arena, &v[i].value, err);
        if (st != TENREC_OK)
            return st;
        v[i].key = arena_text(arena, child->key);
        if (!v[i].key)
            return memory_fail(err);
    }
    ret->v = v;
    ret->n = node->n;
    return TENREC_OK;
}

/* Splits "a,b" or "k=v,k=v" into a list or map of raw texts. */
static tenrec_status value_split(const struct node *node, bool map, const char *context,
                                 struct node **ret, tenrec_error *err)
{
    struct node *out = node_new(map ? NODE_MAP : NODE_LIST, &node->where);
    char *copy = memory_text(node->text), *rest = copy, *word;
    tenrec_status st = out && copy ? TENREC_OK : memory_fail(err);

    while (st == TENREC_OK && (word = strsep(&rest, ","))) {
        char *value = word;
        struct node *child;
        word += strspn(word, " ");
        if (map && !(value = strchr(word, '='))) {
            st = position_fail(err, TENREC_ECONFIG, &node->where,
                               "%s: expected key=value,... or {key: value}, found '%s'", context,
                               word);
            break;
        }
        if (map)
            *value++ = '\0';
        else
            value = word;
        for (size_t n = strlen(value); n > 0 && value[n - 1] == ' '; n--)
            value[n - 1] = '\0';
        if (*value == '\0' || *word == '\0' || (map && node_get(out, word))) {
            st = position_fail(err, TENREC_ECONFIG, &node->where,
                               "%s: an item is empty or duplicate in '%s'", context, node->text);
            break;
        }
        child = node_scalar(value, NODE_RAW, &node->where);
        if (!child || (map ? node_add_key(out, word, &node->where, child) : node_add(out, child)))
            st = memory_fail(err);
    }
    free(copy);
    if (st == TENREC_OK)
        *ret = out;
    else
        node_drop(out);
    return st;
}

/* Makes a list of one item. */
static tenrec_status value_wrap(const struct node *item, struct node **ret, tenrec_error *err)
{
    struct node *list = node_new(NODE_LIST, &item->where), *copy = node_copy(item);

    if (!list || !copy) {
        node_drop(list);
        node_drop(copy);
        return memory_fail(err);
    }
    if (node_add(list, copy) != TENREC_OK) {
        node_drop(list);
        return memory_fail(err);
    }
    *ret = list;
    return TENREC_OK;
}

tenrec_status value_expand(const struct tenrec_option *opt, const struct node *node,
                           const char *context, struct node **ret, tenrec_error *err)
{
    bool list = opt->type == TENREC_OPT_LIST, map = opt->type == TENREC_OPT_MAP;
    bool records = opt->type == TENREC_OPT_RECORDS;
    tenrec_status st;

    if (node->kind == NODE_SCALAR && node->style == NODE_RAW && (list || map || records)) {
        if (records && *node->text != '[')
            return fail_type(node, context, VALUE_RECORDS_EXPECTED, err);
        if (!records && *node->text != (list ? '[' : '{'))
            return value_split(node, map, context, ret, err);
        st = tree_parse(node->text, strlen(node->text), &node->where, ret, err);
        return st;
    }
    if (list && opt->flags & TENREC_OPT_SINGLE && node->kind == NODE_SCALAR && !node_is_null(node))
        return value_wrap(node, ret, err);
    *ret = node_copy(node);
    return *ret ? TENREC_OK : memory_fail(err);
}

static tenrec_status read_any(const struct tenrec_option *opt, const struct node *node,
                              const char *context, struct arena *arena, void *dst,
                              tenrec_error *err)
{
    struct node *expanded = NULL;
    union tenrec_option_value v;
    tenrec_status st;

    if (opt->type != TENREC_OPT_LIST && opt->type != TENREC_OPT_MAP) {
        st = read_scalar(opt, node, context, arena, &v, err);
        if (st == TENREC_OK)
            memcpy(dst, &v, value_size(opt->type));
        return st;
    }
    st = value_expand(opt, node, context, &expanded, err);
    if (st == TENREC_OK && opt->type == TENREC_OPT_LIST)
        st = read_list(opt, expanded, context, arena, dst, err);
    else if (st == TENREC_OK)
        st = read_map(opt, expanded, context, arena, dst, err);
    node_drop(expanded);
    return st;
}

static bool holds_secret(const struct node *node)
{
    bool any = (node->text && secret_is_in(node->text)) || (node->key && secret_is_in(node->key));

    for (size_t i = 0; i < node->n && !any; i++)
        any = holds_secret(node->item[i]);
    return any;
}

/* Makes the error for an invalid value that may hold a password, from the masked value. */
static tenrec_status fail_masked(const struct tenrec_option *opt, const struct node *node,
                                 const char *context, tenrec_error *err)
{
    struct node told = *node;
    struct arena none = { 0 };
    union tenrec_option_value v;
    tenrec_status st = TENREC_OK;

    if (opt->type == TENREC_OPT_LIST || opt->type == TENREC_OPT_MAP || !node->text)
        return position_fail(err, TENREC_ECONFIG, &node->where,
                             "%s: invalid value (not shown: it may hold a password)", context);
    if (!(told.text = secret_mask(node->text)))
        return memory_fail(err);
    st = read_scalar(opt, &told, context, &none, &v, err);
    free(told.text);
    arena_finish(&none);
    return st == TENREC_OK
               ? position_fail(err, TENREC_ECONFIG, &node->where, "%s: invalid value", context)
               : st;
}

tenrec_status value_read(const struct tenrec_option *opt, const struct node *node,
                         const char *context, struct arena *arena, void *dst, tenrec_error *err)
{
    tenrec_status st = read_any(opt, node, context, arena, dst, err);

    if (st == TENREC_ECONFIG && opt->flags & TENREC_OPT_SECRET)
        return position_fail(err, st, &node->where, "%s: invalid value (not shown: it is a secret)",
                             context);
    return st == TENREC_ECONFIG && holds_secret(node) ? fail_masked(opt, node, context, err) : st;
}
