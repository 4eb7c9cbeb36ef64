/* SPDX-License-Identifier: Apache-2.0 */
/* schema.c - the keys of a configuration and the names in it, checked. */
#include "core/config/state.h"

#include "core/base/text.h"
#include "core/config/config.h"
#include "core/config/environment.h"
#include "core/config/settings.h"

#include <stdint.h>
#include <string.h>

#define ENTRY_NAME_MAX 63

/* A key that a map may have, and the kind of its value. */
struct schema_key {
    const char *key;
    enum node_kind kind;
    const char *expected;
};

static const struct schema_key top[] = {
    { "worker", NODE_MAP, "a map" },
    { "security", NODE_MAP, "a map" },
    { "observe", NODE_MAP, "a map" },
    { "init_method", NODE_SCALAR, "text such as env://" },
    { "backend", NODE_SCALAR, "the name of an entry of 'backends'" },
    { "backends", NODE_MAP, "a map" },
    { "stores", NODE_MAP, "a map" },
    { "observers", NODE_MAP, "a map" },
};

static const struct schema_key entry[] = {
    { "plugin", NODE_SCALAR, "the name or path of a plugin" },
    { "options", NODE_MAP, "a map" },
    { "wraps", NODE_SCALAR, "the name of an entry of 'backends'" }, /* of a backend only */
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

bool schema_is_top(const char *key)
{
    for (size_t i = 0; i < COUNT(top); i++)
        if (strcmp(top[i].key, key) == 0)
            return true;
    return false;
}

/* Returns true for a key of `worker:`, misplaced one level too high. */
static bool is_worker_key(const char *key)
{
    for (uint32_t i = 0; i < settings_table.n_options; i++)
        if (strcmp(options_at(&settings_table, i).key, key) == 0)
            return true;
    return strcmp(key, SETTINGS_DEVICE_MAPS) == 0;
}

/* `prefix` begins each error: "" or "backend 'flaky': ". */
static tenrec_status check_map(const struct node *map, const char *prefix,
                               const struct schema_key *known, size_t n, tenrec_error *err)
{
    for (size_t i = 0; i < map->n; i++) {
        const struct node *node = map->item[i];
        const struct schema_key *k = known;
        struct suggestion near;
        char found[120];
        suggest_init(&near, node->key);
        while (k < known + n && strcmp(k->key, node->key) != 0)
            suggest_try(&near, k++->key);
        if (k == known + n)
            return position_fail(
                err, TENREC_ECONFIG, &node->key_where, "%sunknown key '%s'%s%s", prefix, node->key,
                known == top && is_worker_key(node->key) ? ": it belongs under 'worker'"
                                                         : suggest_hint(&near),
                known == entry && !suggest_name(&near)
                    ? "; an option of the plugin belongs under 'options'"
                    : "");
        if (node->kind != k->kind || node_is_null(node) ||
            (node->kind == NODE_SCALAR && *node->text == '\0'))
            return position_fail(err, TENREC_ECONFIG, &node->where, "%s'%s': expected %s, found %s",
                                 prefix, node->key, k->expected,
                                 node_describe(node, found, sizeof found));
    }
    return TENREC_OK;
}

static bool is_name(const char *text)
{
    size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");

    return text[len] == '\0' && len > 0 && len <= ENTRY_NAME_MAX;
}

static tenrec_status check_entry(enum config_section section, const struct node *node,
                                 tenrec_error *err)
{
    char prefix[ENTRY_NAME_MAX + 16], found[120];

    if (!is_name(node->key))
        return position_fail(err, TENREC_ECONFIG, &node->key_where,
                             "'%s' cannot be the name of a %s: 1 to %d letters, digits, '_' and "
                             "'-' were expected",
                             node->key, section_word(section), ENTRY_NAME_MAX);
    if (node->kind != NODE_MAP)
        return position_fail(err, TENREC_ECONFIG, &node->where,
                             "%s '%s': expected a map such as {plugin: NAME}, found %s",
                             section_word(section), node->key,
                             node_describe(node, found, sizeof found));
    snprintf(prefix, sizeof prefix, "%s '%s': ", section_word(section), node->key);
    return check_map(node, prefix, entry, COUNT(entry) - (section != SECTION_BACKENDS), err);
}

/* Names that differ only in case or in '-' and '_' would share their variables. */
static tenrec_status check_same_variable(enum config_section section, const struct node *entries,
                                         const struct node *node, tenrec_error *err)
{
    char mine[ENVIRONMENT_NAME_MAX], other[ENVIRONMENT_NAME_MAX];

    environment_option_name(mine, section, node->key, "");
    for (size_t i = 0; entries->item[i] != node; i++) {
        environment_option_name(other, section, entries->item[i]->key, "");
        if (strcmp(mine, other) == 0)
            return position_fail(err, TENREC_ECONFIG, &node->key_where,
                                 "%s '%s' and '%s' have the same variables (%s...); rename one",
                                 section_key(section), entries->item[i]->key, node->key, mine);
    }
    return TENREC_OK;
}

static tenrec_status check_entries(enum config_section section, const struct node *entries,
                                   tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    for (size_t i = 0; st == TENREC_OK && entries && i < entries->n; i++) {
        st = check_entry(section, entries->item[i], err);
        if (st == TENREC_OK)
            st = check_same_variable(section, entries, entries->item[i], err);
    }
    return st;
}

enum config_scheme config_scheme_find(const char *scheme)
{
    static const char *const own[] = { "tcp", "file", "memory", "env" };
    size_t i = 0;

    while (i < COUNT(own) && strcmp(scheme, own[i]) != 0)
        i++;
    return (enum config_scheme)i;
}

/* A URL's scheme selects the store by its name: a store named like a scheme of the core
 * would never be used. */
static tenrec_status check_stores(const struct node *stores, tenrec_error *err)
{
    for (size_t i = 0; stores && i < stores->n; i++) {
        const struct node *node = stores->item[i];
        if (config_scheme_find(node->key) != CONFIG_OTHER)
            return position_fail(err, TENREC_ECONFIG, &node->key_where,
                                 "store '%s': %s:// needs no plugin, choose another name",
                                 node->key, node->key);
        if (!node_get(node, "plugin"))
            return position_fail(err, TENREC_ECONFIG, &node->key_where,
                                 "store '%s': 'plugin' is missing: name the plugin", node->key);
    }
    return TENREC_OK;
}

tenrec_status schema_check_shape(const struct node *root, tenrec_error *err)
{
    tenrec_status st;
    char found[120];

    if (root->kind != NODE_MAP)
        return position_fail(err, TENREC_ECONFIG, &root->where,
                             "expected a map with the keys worker, security, observe, init_method, "
                             "backend, backends, stores, observers, found %s",
                             node_describe(root, found, sizeof found));
    st = check_map(root, "", top, COUNT(top), err);
    if (st == TENREC_OK)
        st = check_entries(SECTION_BACKENDS, node_get(root, "backends"), err);
    if (st == TENREC_OK)
        st = check_entries(SECTION_STORES, node_get(root, "stores"), err);
    if (st == TENREC_OK)
        st = check_entries(SECTION_OBSERVERS, node_get(root, "observers"), err);
    return st;
}

static void offer_entries(struct suggestion *near, const struct node *entries)
{
    for (size_t i = 0; i < entries->n; i++)
        suggest_try(near, entries->item[i]->key);
}

static tenrec_status fail_cycle(const struct node *entries, const struct node *start,
                                tenrec_error *err)
{
    const struct node *wraps = node_get(start, "wraps");
    const struct position *where = &wraps->where;
    char path[160];
    size_t n = (size_t)snprintf(path, sizeof path, "%s", start->key);

    for (const char *name = wraps->text; n < sizeof path; name = wraps->text) {
        n += (size_t)snprintf(path + n, sizeof path - n, " -> %s", name);
        if (strcmp(name, start->key) == 0)
            break;
        wraps = node_get(node_get(entries, name), "wraps");
    }
    return position_fail(err, TENREC_ECONFIG, where, "backend '%s': wraps itself: %s", start->key,
                         path);
}

static tenrec_status check_links(const struct node *entries, const struct node *node,
                                 tenrec_error *err)
{
    const struct node *at = node, *wraps;

    if (!node_get(node, "plugin"))
        return position_fail(err, TENREC_ECONFIG, &node->key_where,
                             "backend '%s': 'plugin' is missing: name the plugin", node->key);
    wraps = node_get(node, "wraps");
    if (wraps && !node_get(entries, wraps->text)) {
        struct suggestion near;
        suggest_init(&near, wraps->text);
        offer_entries(&near, entries);
        return position_fail(err, TENREC_ECONFIG, &wraps->where,
                             "backend '%s': wraps '%s', which is not in 'backends'%s", node->key,
                             wraps->text, suggest_hint(&near));
    }
    /* Stops at `node`, or after going round a cycle that another entry reports. */
    for (size_t steps = 0; at && steps < entries->n; steps++) {
        wraps = node_get(at, "wraps");
        at = wraps ? node_get(entries, wraps->text) : NULL;
        if (at == node)
            return fail_cycle(entries, node, err);
    }
    return TENREC_OK;
}

tenrec_status schema_check_names(const struct node *root, const char *file, tenrec_error *err)
{
    const struct node *entries = node_get(root, "backends"), *backend = node_get(root, "backend");
    struct suggestion near;
    tenrec_status st = check_stores(node_get(root, "stores"), err);

    for (size_t i = 0; st == TENREC_OK && i < entries->n; i++)
        st = check_links(entries, entries->item[i], err);
    if (st != TENREC_OK)
        return st;
    if (node_get(entries, backend->text))
        return TENREC_OK;
    if (backend->where.kind == POSITION_DEFAULT)
        return tenrec_fail(err, TENREC_ECONFIG,
                           "%s: 'backend' is missing and its default '%s' is not in 'backends': "
                           "say which entry to use",
                           file, backend->text);
    suggest_init(&near, backend->text);
    offer_entries(&near, entries);
    return position_fail(err, TENREC_ECONFIG, &backend->where,
                         "backend '%s' is not in 'backends'%s", backend->text, suggest_hint(&near));
}
