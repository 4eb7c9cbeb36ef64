/* SPDX-License-Identifier: Apache-2.0 */
/* options.c - makes a plugin's options struct from its table. */
#include "core/config/options.h"

#include "core/base/memory.h"
#include "core/base/text.h"
#include "core/config/node.h"
#include "core/config/state.h"
#include "core/config/value.h"

#include <stdlib.h>
#include <string.h>

struct tenrec_option options_at(const struct tenrec_plugin *desc, uint32_t i)
{
    struct tenrec_option opt = { 0 };
    size_t size = desc->option_size < sizeof opt ? desc->option_size : sizeof opt;

    memcpy(&opt, (const char *)desc->options + (size_t)i * desc->option_size, size);
    return opt;
}

static bool has_key(const struct tenrec_plugin *desc, const char *key, struct suggestion *near)
{
    for (uint32_t i = 0; i < desc->n_options; i++) {
        struct tenrec_option opt = options_at(desc, i);
        if (strcmp(opt.key, key) == 0)
            return true;
        suggest_try(near, opt.key);
    }
    return false;
}

/* "backend 'flaky': option 'delay'" or "worker.name", for the beginning of an error. */
static void options_context(char *buf, size_t size, const struct option_source *src,
                            const char *key)
{
    if (src->item)
        snprintf(buf, size, "%s: '%s'", src->item, key);
    else if (src->entry)
        snprintf(buf, size, "%s '%s': option '%s'", section_word(src->section), src->entry, key);
    else
        snprintf(buf, size, "%s.%s", src->top, key);
}

struct position options_key_where(const struct option_source *src, const char *key)
{
    const struct node *written = node_get(src->map, key);
    char name[ENVIRONMENT_NAME_MAX];
    const struct variable *variable;

    environment_key_name(name, src->top, key);
    variable = environment_get(src->env, name);
    if (variable && !(written && written->where.kind == POSITION_CODE))
        return environment_where(variable);
    return written ? written->where : (struct position){ .kind = POSITION_DEFAULT };
}

struct option_source options_source(const struct config_layer *layer)
{
    if (!layer)
        return (struct option_source){ .entry = "" };
    return (struct option_source){
        .map = layer->options,
        .env = layer->config ? &layer->config->env : NULL,
        .section = layer->section,
        .entry = layer->name,
        .innermost = layer->innermost,
    };
}

/* Warns of variables that are addressed to this backend but match no option. */
static void warn_unread(const struct tenrec_plugin *desc, const struct option_source *src)
{
    char prefix[ENVIRONMENT_NAME_MAX], name[ENVIRONMENT_NAME_MAX];
    struct suggestion near;

    environment_option_name(prefix, src->section, src->entry, "");
    for (size_t i = 0; i < src->env->n; i++) {
        const char *found = src->env->v[i].name;
        bool read = false;
        if (strncmp(found, prefix, strlen(prefix)) != 0)
            continue;
        suggest_init(&near, found);
        for (uint32_t k = 0; k < desc->n_options && !read; k++) {
            environment_option_name(name, src->section, src->entry, options_at(desc, k).key);
            read = strcmp(found, name) == 0;
            suggest_try(&near, name);
        }
        if (!read)
            environment_warn(found, "is not used: %s '%s' has no such option%s",
                             section_word(src->section), src->entry, suggest_guess(&near));
    }
    for (size_t i = 0; src->innermost && i < ENVIRONMENT_N_SHORT; i++) {
        const char *option, *found = environment_short(i, &option);
        suggest_init(&near, option);
        if (environment_get(src->env, found) && !has_key(desc, option, &near))
            environment_warn(found, "is not used: backend '%s' has no option '%s'", src->entry,
                             option);
    }
}

tenrec_status options_check_keys(const struct tenrec_plugin *desc, const struct option_source *src,
                                 const char *also, tenrec_error *err)
{
    for (size_t i = 0; src->map && i < src->map->n; i++) {
        const struct node *node = src->map->item[i];
        struct suggestion near;
        suggest_init(&near, node->key);
        if (has_key(desc, node->key, &near) || (also && strcmp(also, node->key) == 0))
            continue;
        if (also)
            suggest_try(&near, also);
        if (src->item)
            return position_fail(err, TENREC_ECONFIG, &node->key_where, "%s: has no key '%s'%s",
                                 src->item, node->key, suggest_hint(&near));
        if (src->entry)
            return position_fail(err, TENREC_ECONFIG, &node->key_where,
                                 "%s '%s': has no option '%s'%s", section_word(src->section),
                                 src->entry, node->key, suggest_hint(&near));
        if (schema_is_top(node->key))
            return position_fail(err, TENREC_ECONFIG, &node->key_where,
                                 "%s: has no key '%s': it belongs beside '%s', not below it",
                                 src->top, node->key, src->top);
        return position_fail(err, TENREC_ECONFIG, &node->key_where, "%s: has no key '%s'%s",
                             src->top, node->key, suggest_hint(&near));
    }
    return TENREC_OK;
}

/* Replaces *list by a list without the words of "^a,b". */
static tenrec_status options_exclude(const struct tenrec_option *opt,
                                     const struct variable *variable, const char *context,
                                     struct node **list, tenrec_error *err)
{
    struct position where = environment_where(variable);
    struct node *raw = node_scalar(variable->value + 1, NODE_RAW, &where);
    struct node *words = NULL, *old = NULL, *left = node_new(NODE_LIST, &where);
    struct tenrec_option_list checked;
    struct arena arena = { 0 };
    tenrec_status st = TENREC_ENOMEM;

    if (!raw || !left)
        goto out;
    st = value_expand(opt, raw, context, &words, err);
    if (st == TENREC_OK)
        st = value_read(opt, words, context, &arena, &checked, err);
    if (st == TENREC_OK && *list)
        st = value_expand(opt, *list, context, &old, err);
    for (size_t i = 0; st == TENREC_OK && old && i < old->n; i++) {
        bool out = false;
        for (size_t k = 0; k < words->n; k++)
            out |= old->item[i]->text && strcmp(old->item[i]->text, words->item[k]->text) == 0;
        if (!out) {
            struct node *copy = node_copy(old->item[i]);
            st = copy ? node_add(left, copy) : TENREC_ENOMEM;
        }
    }
    if (st == TENREC_OK) {
        node_drop(*list);
        *list = left;
        left = NULL;
    }

out:
    arena_finish(&arena);
    node_drop(raw);
    node_drop(words);
    node_drop(old);
    node_drop(left);
    return st == TENREC_ENOMEM ? memory_fail(err) : st;
}

static tenrec_status options_apply(const struct tenrec_option *opt, const struct variable *variable,
                                   const char *context, struct node **value, tenrec_error *err)
{
    struct position where;

    if (!variable)
        return TENREC_OK;
    if (opt->type == TENREC_OPT_LIST && opt->item == TENREC_OPT_STRING && *variable->value == '^')
        return options_exclude(opt, variable, context, value, err);
    where = environment_where(variable);
    node_drop(*value);
    *value = node_scalar(variable->value, NODE_RAW, &where);
    return *value ? TENREC_OK : memory_fail(err);
}

tenrec_status options_resolve(const struct tenrec_option *opt, const struct option_source *src,
                              struct node **ret, tenrec_error *err)
{
    static const struct position by_default = { .kind = POSITION_DEFAULT };
    const struct node *written = node_get(src->map, opt->key);
    char context[VALUE_CONTEXT_MAX], name[ENVIRONMENT_NAME_MAX];
    struct node *value = NULL;
    tenrec_status st = TENREC_OK;

    if (written || opt->def) {
        value = written ? node_copy(written) : node_scalar(opt->def, NODE_RAW, &by_default);
        if (!value)
            return memory_fail(err);
    }
    if (src->env && !(written && written->where.kind == POSITION_CODE)) {
        const char *short_name = src->innermost ? environment_short_name(opt->key) : NULL;
        options_context(context, sizeof context, src, opt->key);
        if (src->entry)
            environment_option_name(name, src->section, src->entry, opt->key);
        else
            environment_key_name(name, src->top, opt->key);
        /* The weaker first: the long name also names the backend. */
        if (short_name)
            st = options_apply(opt, environment_get(src->env, short_name), context, &value, err);
        if (st == TENREC_OK)
            st = options_apply(opt, environment_get(src->env, name), context, &value, err);
    }
    if (st != TENREC_OK) {
        node_drop(value);
        return st;
    }
    *ret = value;
    return TENREC_OK;
}

/* Reads one value into `opts`. */
static tenrec_status options_read(const struct tenrec_option *opt, const struct option_source *src,
                                  const struct node *value, struct arena *arena, void *opts,
                                  tenrec_error *err)
{
    char context[VALUE_CONTEXT_MAX];
    void *at = (char *)opts + opt->offset;

    options_context(context, sizeof context, src, opt->key);
    return opt->type == TENREC_OPT_RECORDS ? record_read_all(opt, value, context, arena, at, err)
                                           : value_read(opt, value, context, arena, at, err);
}

tenrec_status options_fill(const struct tenrec_plugin *desc, const struct option_source *src,
                           struct arena *arena, void *opts, tenrec_error *err)
{
    for (uint32_t i = 0; i < desc->n_options; i++) {
        struct tenrec_option opt = options_at(desc, i);
        struct node *value;
        tenrec_status st = options_resolve(&opt, src, &value, err);
        if (st != TENREC_OK)
            return st;
        if (!value)
            continue;
        st = options_read(&opt, src, value, arena, opts, err);
        if (st == TENREC_ECONFIG && !node_get(src->map, opt.key) &&
            value->where.kind == POSITION_DEFAULT) {
            st = TENREC_EPLUGIN;
            if (err)
                err->code = st;
            tenrec_error_prefix(err, "plugin '%s': the default '%s' does not parse", desc->name,
                                opt.flags & TENREC_OPT_SECRET ? "***" : opt.def);
        }
        node_drop(value);
        if (st != TENREC_OK)
            return st;
    }
    return TENREC_OK;
}

tenrec_status options_make(const struct tenrec_plugin *desc, const struct config_layer *layer,
                           void **ret, tenrec_error *err)
{
    struct option_source src = options_source(layer);
    struct options_made *made;
    tenrec_status st;

    if (!layer)
        src.entry = desc->name;
    st = options_check_keys(desc, &src, NULL, err);
    if (st != TENREC_OK)
        return st;
    /* The extra byte: an empty options struct has an address inside the block, too. */
    made = memory_new(1, sizeof *made + desc->options_size + 1);
    if (!made)
        return memory_fail(err);
    st = options_fill(desc, &src, &made->arena, made->opts, err);
    if (st != TENREC_OK) {
        options_drop(made->opts);
        return st;
    }
    if (src.env)
        warn_unread(desc, &src);
    *ret = made->opts;
    return TENREC_OK;
}

void options_drop(void *opts)
{
    struct options_made *made;

    if (!opts)
        return;
    made = (struct options_made *)(void *)((char *)opts - offsetof(struct options_made, opts));
    arena_finish(&made->arena);
    free(made);
}
