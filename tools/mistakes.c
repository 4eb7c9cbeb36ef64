/* SPDX-License-Identifier: Apache-2.0 */
/* mistakes.c - leaves out of a configuration what an error names, so that a check finds the next
 * mistake. What depends on the rest is left out with it, or gets another name: one mistake is
 * not the cause of a second. */
#include "mistakes.h"

#include "core/config/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a node is to the configuration. */
enum level {
    LEVEL_TOP,     /* the configuration */
    LEVEL_SECTION, /* `backends:` and the like */
    LEVEL_ENTRY,
    LEVEL_OPTIONS, /* `options:` of an entry */
    LEVEL_OPTION,
    LEVEL_RECORD, /* a map in a list */
    LEVEL_OTHER
};

struct forgiving {
    struct node *root;     /* NULL: only an option is left out */
    unsigned line, column; /* of the mistake */
};

/* Reads "FILE:3:7: " at the beginning of an error. */
static bool mistake_place(const char *text, const char *file, struct forgiving *ret)
{
    const size_t n = strlen(file);
    int used = 0;

    return strncmp(text, file, n) == 0 &&
           sscanf(text + n, ":%u:%u:%n", &ret->line, &ret->column, &used) == 2 && used > 0;
}

static bool node_is_at(const struct node *n, const struct forgiving *f)
{
    const struct position *const where[] = { &n->where, &n->key_where };

    for (int i = 0; i < 2; i++)
        if (where[i]->kind == POSITION_FILE && where[i]->line == f->line &&
            where[i]->column == f->column)
            return true;
    return false;
}

static bool level_is_section(const char *key)
{
    return strcmp(key, "backends") == 0 || strcmp(key, "stores") == 0 ||
           strcmp(key, "observers") == 0;
}

static enum level level_of(enum level outer, const struct node *child)
{
    if (child->kind == NODE_MAP && !child->key)
        return LEVEL_RECORD;
    switch (outer) {
    case LEVEL_TOP:
        return level_is_section(child->key) ? LEVEL_SECTION : LEVEL_OTHER;
    case LEVEL_SECTION:
        return LEVEL_ENTRY;
    case LEVEL_ENTRY:
        return strcmp(child->key, "options") == 0 ? LEVEL_OPTIONS : LEVEL_OTHER;
    case LEVEL_OPTIONS:
        return LEVEL_OPTION;
    default:
        return LEVEL_OTHER;
    }
}

/* Returns true if `node` means nothing without its `child`. */
static bool level_needs(enum level level, const struct node *child)
{
    return level == LEVEL_RECORD || (level == LEVEL_OPTION && child->kind != NODE_MAP) ||
           (level == LEVEL_ENTRY && strcmp(child->key, "plugin") == 0);
}

/* ---- names of entries --------------------------------------------------------- */

/* An entry that may stand for another: it ends each chain. NULL: there is none. */
static const char *entry_other(const struct node *root, const char *than)
{
    const struct node *entries = node_get(root, "backends");

    for (size_t i = 0; entries && entries->kind == NODE_MAP && i < entries->n; i++)
        if (strcmp(entries->item[i]->key, than) != 0 && !node_get(entries->item[i], "wraps"))
            return entries->item[i]->key;
    return NULL;
}

/* Returns false without memory. */
static bool name_change(struct node *scalar, const char *name)
{
    char *copy = strdup(name);

    if (!copy)
        return false;
    free(scalar->text);
    scalar->text = copy;
    return true;
}

/* `entry` is left out: what names it names another from now on. */
static void entry_forget(struct node *root, const char *entry)
{
    struct node *entries = node_get(root, "backends"), *backend = node_get(root, "backend");
    const char *other = entry_other(root, entry);

    if (!entries || !other)
        return;
    if (!backend &&
        (backend = node_scalar(other, NODE_PLAIN, &(struct position){ .kind = POSITION_CODE })))
        (void)node_add_key(root, "backend", &backend->where, backend);
    else if (backend && backend->kind == NODE_SCALAR && strcmp(backend->text, entry) == 0)
        (void)name_change(backend, other);
    for (size_t i = 0; i < entries->n; i++) {
        struct node *wraps = node_get(entries->item[i], "wraps");

        if (wraps && wraps->kind == NODE_SCALAR && strcmp(wraps->text, entry) == 0)
            (void)name_change(wraps, other);
    }
}

/* Returns true if `child` was a wrong name of an entry, and is a right one now. */
static bool name_mend(const struct node *root, const struct node *of, struct node *child)
{
    const char *other;

    if (child->kind != NODE_SCALAR || !child->key ||
        (strcmp(child->key, "wraps") != 0 && strcmp(child->key, "backend") != 0))
        return false;
    other = entry_other(root, of->key ? of->key : "");
    return other && strcmp(child->text, other) != 0 && name_change(child, other);
}

/* ---- the tree ------------------------------------------------------------------ */

static void child_remove(struct node *of, size_t i)
{
    node_drop(of->item[i]);
    of->n--;
    memmove(&of->item[i], &of->item[i + 1], (of->n - i) * sizeof *of->item);
}

enum found { FOUND_NONE, FOUND_LEFT_OUT, FOUND_HERE };

/* The innermost node at the place, with what means nothing without it. FOUND_HERE: `n` itself is to
 * be left out. */
static enum found node_forgive(struct node *n, enum level level, const struct forgiving *f)
{
    for (size_t i = 0; i < n->n; i++) {
        struct node *child = n->item[i];
        enum found found = node_forgive(child, level_of(level, child), f);

        if (found == FOUND_NONE && node_is_at(child, f))
            found = FOUND_HERE;
        if (found == FOUND_NONE)
            continue;
        if (found == FOUND_HERE && level_needs(level, child))
            return FOUND_HERE;
        if (found == FOUND_HERE && (level == LEVEL_ENTRY || level == LEVEL_TOP) && f->root &&
            name_mend(f->root, n, child))
            return FOUND_LEFT_OUT;
        if (found == FOUND_HERE && level == LEVEL_SECTION && f->root &&
            strcmp(n->key, "backends") == 0)
            entry_forget(f->root, child->key);
        if (found == FOUND_HERE && level_of(level, child) == LEVEL_RECORD)
            child->style = NODE_LEFT_OUT;
        else if (found == FOUND_HERE)
            child_remove(n, i);
        return FOUND_LEFT_OUT;
    }
    return FOUND_NONE;
}

static bool environment_remove(struct environment *env, const char *name)
{
    for (size_t i = 0; i < env->n; i++) {
        if (strcmp(env->v[i].name, name) != 0)
            continue;
        free(env->v[i].name);
        free(env->v[i].value);
        env->v[i] = env->v[--env->n];
        return true;
    }
    return false;
}

/* An error that begins with "environment NAME" is about that variable. */
static bool variable_forgive(struct environment *env, const char *text)
{
    char name[ENVIRONMENT_NAME_MAX];

    return sscanf(text, "environment %191[A-Z0-9_]", name) == 1 && environment_remove(env, name);
}

static bool config_leave_out(void *arg, struct tenrec_config *config, struct node *root,
                             const tenrec_error *err)
{
    const struct mistakes *m = arg;
    struct forgiving f = { .root = root };

    if (!variable_forgive(&config->env, err->text) &&
        !(mistake_place(err->text, config->name, &f) &&
          node_forgive(root, LEVEL_TOP, &f) == FOUND_LEFT_OUT))
        return false;
    m->tell(m->arg, err);
    return true;
}

struct config_mistakes mistakes_of_config(struct mistakes *m)
{
    return (struct config_mistakes){ config_leave_out, m };
}

bool mistakes_leave_out_option(struct tenrec_config *config, const struct config_layer *layer,
                               const tenrec_error *err)
{
    struct node *entry = node_get(node_get(config->root, section_key(layer->section)), layer->name);
    struct node *options = node_get(entry, "options");
    struct forgiving f = { .root = NULL };

    if (variable_forgive(&config->env, err->text))
        return true;
    return options && mistake_place(err->text, config->name, &f) &&
           node_forgive(options, LEVEL_OPTIONS, &f) == FOUND_LEFT_OUT;
}
