/* SPDX-License-Identifier: Apache-2.0 */
/* info_plugin.c - plugins as JSON, each first tried in a process of its own. */
#include "core/base/text.h"
#include "core/plugin/plugin.h"
#include "core/plugin/plugin_file.h"
#include "entry.h"
#include "info/info.h"
#include "outside.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <tenrec/backend.h>

static json_t *flag_list(uint32_t flags)
{
    static const char *const name[] = { "wraps",  "cuda", "unloadable", "loopback_only",
                                        "proves", "tls",  "encrypts",   "setuid" };
    json_t *list = json_array();

    for (size_t i = 0; i < sizeof name / sizeof name[0]; i++)
        if (flags & (1u << i))
            json_array_append_new(list, json_string(name[i]));
    return list;
}

struct probing {
    const struct tenrec_probe *probe;
    void *options;
};

/* "transport.uv" = "not viable: why" goes to "transports" as {name, viable,
 * reason}, and "viable, on lo" as {name, viable, note}; any other key goes to
 * "probe". */
static void add_row(json_t *backend, const char *key, const char *value)
{
    static const char *const kind[][2] = { { "transport.", "transports" },
                                           { "channel.", "channels" } };

    for (size_t i = 0; i < 2; i++) {
        size_t n = strlen(kind[i][0]);
        bool viable = !strncmp(value, "viable", 6);
        const char *more = value + strcspn(value, ",:");
        json_t *row;

        if (strncmp(key, kind[i][0], n) != 0)
            continue;
        row = json_object();
        json_object_set_new(row, "name", json_string(key + n));
        json_object_set_new(row, "viable", json_boolean(viable));
        more += strspn(more, ",: ");
        if (*more || !viable)
            json_object_set_new(row, viable ? "note" : "reason", json_string(more));
        json_array_append_new(json_object_get(backend, kind[i][1]), row);
        return;
    }
    json_object_set_new(json_object_get(backend, "probe"), key, json_string(value));
}

static void print_row(void *arg, const char *key, const char *value)
{
    fprintf(arg, "%s%c%s%c", key, '\0', value, '\0');
}

static void run_probe(void *arg, FILE *to)
{
    struct probing *p = arg;

    p->probe->probe(p->options, print_row, to);
}

/* In a process of its own: a library that it asks may crash, hang, or take devices. */
static void add_probe(json_t *backend, const struct tenrec_plugin *p)
{
    const struct tenrec_extension *list = TENREC_HAS(p, extensions) ? p->extensions : NULL;
    struct probing probing = { .probe = (const void *)tenrec_extension_find(
                                   list, TENREC_EXTENSION_PROBE, sizeof *probing.probe) };
    struct trial_output rows = { NULL, 0 };
    char how[128];

    if (!probing.probe || options_make(p, NULL, &probing.options, NULL) != TENREC_OK)
        return;
    if (!trial_run(run_probe, &probing, &rows, how, sizeof how))
        json_object_set_new(backend, "probe_error", json_sprintf("its probe %s", how));
    for (const char *at = rows.text; at && at < rows.text + rows.len;) {
        const char *value = at + strlen(at) + 1, *end = rows.text + rows.len;

        if (value > end || value + strlen(value) >= end) /* cut off */
            break;
        add_row(backend, at, value);
        at = value + strlen(value) + 1;
    }
    free(rows.text);
    options_drop(probing.options);
}

static json_t *plugin_object(struct plugin *b)
{
    const struct tenrec_plugin *p = plugin_description(b);
    json_t *r = json_object();
    struct mapped_file file;
    char abi[32];

    mapped_file_find(p, &file);
    snprintf(abi, sizeof abi, "%u.%u", (unsigned)p->abi_major, (unsigned)p->abi_minor);
    json_object_set_new(r, "name", json_string(p->name));
    json_object_set_new(r, "version", json_string(p->version ? p->version : ""));
    json_object_set_new(r, "summary", json_string(p->summary ? p->summary : ""));
    json_object_set_new(r, "path", json_string(plugin_path(b)));
    json_object_set_new(r, "build_id", json_string(file.build_id));
    json_object_set_new(r, "abi", json_string(abi));
    json_object_set_new(r, "flags", flag_list(p->flags));
    if (p->kind == TENREC_PLUGIN_BACKEND) {
        json_object_set_new(r, "transports", json_array());
        json_object_set_new(r, "channels", json_array());
    }
    json_object_set_new(r, "probe", json_object());
    add_probe(r, p);
    json_object_set_new(r, "options", info_options(p));
    return r;
}

/* Loads a plugin and reads its defaults; unloads a plugin that cannot be used. */
static tenrec_status plugin_open(const char *path, struct plugin **ret, tenrec_error *err)
{
    void *options = NULL;
    tenrec_status st = plugin_get_kind(path, PLUGIN_KIND_ANY, ret, err);

    if (st != TENREC_OK)
        return st;
    st = options_make(plugin_description(*ret), NULL, &options, err);
    options_drop(options);
    if (st != TENREC_OK) {
        char name[TENREC_NAME_MAX + 1];

        snprintf(name, sizeof name, "%s", plugin_description(*ret)->name);
        plugin_put(*ret);
        tenrec_plugin_unload(name, NULL);
    }
    return st;
}

static void try_plugin(void *path, FILE *to)
{
    void *options = NULL;
    struct plugin *b;
    tenrec_error err;

    (void)to;
    if (plugin_open(path, &b, &err) == TENREC_OK &&
        options_make(plugin_description(b), NULL, &options, &err) == TENREC_OK)
        plugin_loaded(b)->construct(options, &err);
}

static bool is_named(const struct info_names *names, const char *name)
{
    for (size_t i = 0; i < names->n; i++)
        if (strcmp(names->v[i], name) == 0)
            return true;
    return names->n == 0;
}

struct finding {
    json_t *all;
    const struct info_names *names;
};

static void find_file(json_t *all, const char *path)
{
    json_t *unusable = json_object_get(all, "unusable");
    struct plugin *b;
    tenrec_error err;
    char how[128];

    if (trial_run(try_plugin, (void *)(uintptr_t)path, NULL, how, sizeof how)) {
        if (plugin_open(path, &b, &err) == TENREC_OK) {
            plugin_put(b);
            return;
        }
    } else {
        tenrec_fail(&err, TENREC_EPLUGIN, "loading it and checking its options %s", how);
    }
    json_array_append_new(unusable, json_pack("{s:o*, s:o*}", "path", json_string(path), "reason",
                                              json_string(err.text)));
}

static void on_file(void *arg, const char *name, const char *path)
{
    const struct finding *f = arg;

    if (is_named(f->names, name))
        find_file(f->all, path);
}

static void on_plugin(void *arg, struct plugin *b)
{
    json_array_append_new(arg, plugin_object(b));
}

void info_find(json_t *all, const struct info_names *names)
{
    struct finding f = { all, names };

    loader_list(on_file, &f);
    for (size_t i = 0; i < names->n; i++)
        if (loader_is_path(names->v[i]))
            find_file(all, names->v[i]);
}

/* ---- a choice of them ---------------------------------------------------------- */

static const char *const plugin_lists[] = { "backends", "stores", "observers" };
static const char *const sections[] = { "worker", "security", "observe" };

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static bool plugin_is_named(const json_t *plugin, const struct info_names *names)
{
    return is_named(names, json_string_value(json_object_get(plugin, "name"))) ||
           is_named(names, json_string_value(json_object_get(plugin, "path")));
}

/* Returns true if the output has a part of that name. */
static bool choice_exists(const json_t *all, const char *name)
{
    char *word = (char *)(uintptr_t)name;
    const struct info_names one = { &word, 1 };
    const json_t *plugin;
    size_t k;

    for (size_t i = 0; i < COUNT(plugin_lists); i++)
        json_array_foreach(json_object_get(all, plugin_lists[i]), k, plugin)
        {
            if (plugin_is_named(plugin, &one))
                return true;
        }
    for (size_t i = 0; i < COUNT(sections); i++)
        if (strcmp(sections[i], name) == 0)
            return true;
    return false;
}

static void suggest_file(void *near, const char *name, const char *path)
{
    (void)path;
    suggest_try(near, name);
}

static tenrec_status choice_fail(const json_t *all, const char *name, tenrec_error *err)
{
    const json_t *why = json_array_get(json_object_get(all, "unusable"), 0);
    struct suggestion near;

    if (why)
        return tenrec_fail(err, TENREC_EPLUGIN, "%s: %s", inspect_text(why, "path"),
                           inspect_text(why, "reason"));
    suggest_init(&near, name);
    loader_list(suggest_file, &near);
    for (size_t i = 0; i < COUNT(sections); i++)
        suggest_try(&near, sections[i]);
    return tenrec_fail(err, TENREC_ENOTFOUND, "no plugin '%s'%s", name, suggest_hint(&near));
}

tenrec_status info_choose(json_t *all, const struct info_names *names, tenrec_error *err)
{
    if (names->n == 0)
        return TENREC_OK;
    for (size_t i = 0; i < names->n; i++)
        if (!choice_exists(all, names->v[i]))
            return choice_fail(all, names->v[i], err);
    for (size_t i = 0; i < COUNT(plugin_lists); i++) {
        json_t *list = json_object_get(all, plugin_lists[i]);

        for (size_t k = json_array_size(list); k > 0; k--)
            if (!plugin_is_named(json_array_get(list, k - 1), names))
                json_array_remove(list, k - 1);
    }
    for (size_t i = 0; i < COUNT(sections); i++)
        if (!is_named(names, sections[i]))
            json_object_del(all, sections[i]);
    json_object_del(all, "folders");
    return TENREC_OK;
}

void info_list(json_t *all)
{
    plugin_each(TENREC_PLUGIN_BACKEND, on_plugin, json_object_get(all, "backends"));
    plugin_each(TENREC_PLUGIN_STORE, on_plugin, json_object_get(all, "stores"));
    plugin_each(TENREC_PLUGIN_OBSERVER, on_plugin, json_object_get(all, "observers"));
}
