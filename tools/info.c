/* SPDX-License-Identifier: Apache-2.0 */
/* info.c - `tenrec info`: the backends and stores of this machine, and the values in force.
 *
 * Everything is collected into one JSON object, from which the text is printed
 * too, so that both agree. */
#include "base/clock.h"
#include "config/security_settings.h"
#include "config/settings.h"
#include "entry.h"
#include "inspect.h"
#include "plugin/loader.h"
#include "plugin/plugin_folders.h"
#include "plugin/plugin_validate.h"
#include "plugin/registry.h"
#include "security/security.h"
#include "tool.h"
#include "trial.h"
#include "yaml/quantity.h"

#include <getopt.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <tenrec/backend.h>
#include <tenrec/tenrec.h>

/* ---- collect ------------------------------------------------------------------ */

static json_t *flag_list(uint32_t flags)
{
    static const char *const name[] = { "wraps", "cuda", "unloadable", "loopback_only" };
    json_t *list = json_array();

    for (size_t i = 0; i < sizeof name / sizeof name[0]; i++)
        if (flags & (1u << i))
            json_array_append_new(list, json_string(name[i]));
    return list;
}

/* A limit as a user would write it. */
static json_t *info_limit(const struct tenrec_option *o, int64_t v)
{
    enum tenrec_option_type type = o->item ? o->item : o->type;
    char buf[QUANTITY_TEXT_MAX];

    if (type == TENREC_OPT_DURATION)
        return json_string(quantity_print_duration((uint64_t)v, buf));
    if (type == TENREC_OPT_SIZE)
        return json_string(quantity_print_size((uint64_t)v, buf));
    return json_integer(v);
}

static json_t *choice_list(const char *choices)
{
    json_t *list = json_array();

    while (*choices) {
        size_t n = strcspn(choices, "|");

        json_array_append_new(list, json_stringn(choices, n));
        choices += n + (choices[n] == '|');
    }
    return list;
}

static json_t *key_list(const struct tenrec_option_record *record);
static json_t *table_list(const struct tenrec_plugin *table);

static json_t *option_object(const struct tenrec_option *o)
{
    char type[OPTIONS_TYPE_MAX];
    json_t *r = json_object();

    json_object_set_new(r, "name", json_string(o->key));
    json_object_set_new(r, "type", json_string(options_type(o, type)));
    json_object_set_new(r, "default", json_string(o->def ? o->def : ""));
    if (o->min || o->max)
        json_object_set_new(r, "min", info_limit(o, o->min));
    if (o->max && o->max >= o->min && o->max < INT64_MAX / 2) /* else there is no limit */
        json_object_set_new(r, "max", info_limit(o, o->max));
    if (o->choices)
        json_object_set_new(r, "choices", choice_list(o->choices));
    json_object_set_new(r, "help", json_string(o->help ? o->help : ""));
    if (o->record)
        json_object_set_new(r, "keys", key_list(o->record));
    return r;
}

/* The keys of the maps of a list of maps. */
static json_t *key_list(const struct tenrec_option_record *record)
{
    const struct tenrec_plugin table = { .options = record->options,
                                         .n_options = record->n_options,
                                         .option_size = record->option_size };
    return table_list(&table);
}

static json_t *table_list(const struct tenrec_plugin *table)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < table->n_options; i++) {
        struct tenrec_option o = options_at(table, i);

        json_array_append_new(list, option_object(&o));
    }
    return list;
}

/* "transport.uv" = "not viable: why" goes to "transports" as {name, viable,
 * reason}, and "viable, on lo" as {name, viable, note}; any other key goes to
 * "probe". */
static void on_probe(void *arg, const char *key, const char *value)
{
    static const char *const kind[][2] = { { "transport.", "transports" },
                                           { "channel.", "channels" } };
    json_t *backend = arg;

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

static json_t *plugin_object(struct backend *b)
{
    const struct tenrec_plugin *p = backend_plugin(b);
    json_t *r = json_object();
    void *options = NULL;
    char abi[32];

    snprintf(abi, sizeof abi, "%u.%u", (unsigned)p->abi_major, (unsigned)p->abi_minor);
    json_object_set_new(r, "name", json_string(p->name));
    json_object_set_new(r, "version", json_string(p->version ? p->version : ""));
    json_object_set_new(r, "summary", json_string(p->summary ? p->summary : ""));
    json_object_set_new(r, "path", json_string(backend_path(b)));
    json_object_set_new(r, "abi", json_string(abi));
    json_object_set_new(r, "flags", flag_list(p->flags));
    if (p->kind == TENREC_PLUGIN_BACKEND) {
        json_object_set_new(r, "transports", json_array());
        json_object_set_new(r, "channels", json_array());
    }
    json_object_set_new(r, "probe", json_object());
    if (TENREC_HAS(p, probe) && options_make(p, NULL, &options, NULL) == TENREC_OK)
        p->probe(options, on_probe, r);
    options_drop(options);
    json_object_set_new(r, "options", table_list(p));
    return r;
}

/* The keys of `worker:`. */
static json_t *worker_list(void)
{
    json_t *list = table_list(&settings_table);

    json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s}", "name", SETTINGS_DEVICE_MAPS,
                                          "type", "map of maps", "default", "{}", "help",
                                          SETTINGS_DEVICE_MAPS_HELP));
    return list;
}

/* The keys of `security:`, those of `mtls:` in it with their prefix. */
static json_t *security_list(void)
{
    json_t *list = table_list(&security_table), *mtls = table_list(&security_mtls_table), *key;
    char name[64];
    size_t i;

    json_array_foreach(mtls, i, key)
    {
        snprintf(name, sizeof name, SECURITY_MTLS_KEY ".%s",
                 json_string_value(json_object_get(key, "name")));
        json_object_set_new(key, "name", json_string(name));
    }
    json_array_extend(list, mtls);
    json_decref(mtls);
    return list;
}

/* Loads a plugin and reads its defaults; unloads a plugin that cannot be used. */
static tenrec_status plugin_get(const char *path, struct backend **ret, tenrec_error *err)
{
    void *options = NULL;
    tenrec_status st = backend_get_kind(path, PLUGIN_KIND_ANY, ret, err);

    if (st != TENREC_OK)
        return st;
    st = options_make(backend_plugin(*ret), NULL, &options, err);
    options_drop(options);
    if (st != TENREC_OK) {
        char name[TENREC_NAME_MAX + 1];

        snprintf(name, sizeof name, "%s", backend_plugin(*ret)->name);
        backend_put(*ret);
        tenrec_plugin_unload(name, NULL);
    }
    return st;
}

static void try_plugin(void *path)
{
    void *options = NULL;
    struct backend *b;
    tenrec_error err;

    if (plugin_get(path, &b, &err) == TENREC_OK &&
        options_make(backend_plugin(b), NULL, &options, &err) == TENREC_OK)
        backend_file(b)->construct(options, &err);
}

static void on_file(void *arg, const char *name, const char *path)
{
    json_t *unusable = json_object_get(arg, "unusable");
    struct backend *b;
    tenrec_error err;
    char how[128];

    (void)name;
    if (trial_run(try_plugin, (void *)(uintptr_t)path, how, sizeof how)) {
        if (plugin_get(path, &b, &err) == TENREC_OK) {
            backend_put(b);
            return;
        }
    } else {
        tenrec_fail(&err, TENREC_EPLUGIN, "loading it and checking its options %s", how);
    }
    json_array_append_new(unusable, json_pack("{s:o*, s:o*}", "path", json_string(path), "reason",
                                              json_string(err.text)));
}

static void on_plugin(void *arg, struct backend *b)
{
    json_array_append_new(arg, plugin_object(b));
}

static void on_value(void *arg, const char *key, const char *value, const char *source)
{
    json_array_append_new(arg, json_pack("{s:o*, s:o*, s:o*}", "key", json_string(key), "value",
                                         json_string(value), "source", json_string(source)));
}

/* The mode that a worker would be in here. */
static tenrec_status add_security(const struct tenrec_config *config, json_t *list,
                                  tenrec_error *err)
{
    struct security *security;
    tenrec_status st = security_open(config, CLOCK_NEVER, &security, err);

    if (st != TENREC_OK)
        return st;
    on_value(list, "security", security_mode_name(security->mode), security->mode_source);
    security_drop(security);
    return TENREC_OK;
}

static tenrec_status collect_config(const char *path, json_t *all, tenrec_error *err)
{
    struct tenrec_config *config = NULL;
    struct config_settings *settings = NULL;
    struct entries entries;
    json_t *list = json_array();
    tenrec_status st;

    json_object_set_new(all, "config", json_string(path));
    json_object_set_new(all, "values", list);
    st = tenrec_config_load(path, &config, err);
    if (!st)
        st = config_settings_make(config, &settings, err);
    config_settings_drop(settings);
    if (!st)
        st = entries_try(config, err);
    if (!st)
        st = entries_open(config, &entries, err);
    if (!st) {
        st = config_show(config, on_value, list, err);
        if (!st)
            st = add_security(config, list, err);
        for (size_t i = 0; !st && i < entries.n + entries.n_stores; i++)
            st = options_show(backend_plugin(entries.v[i].backend), &entries.v[i].layer, on_value,
                              list, err);
        entries_close(&entries);
    }
    tenrec_config_drop(config);
    return st;
}

/* ---- print as text -------------------------------------------------------------- */

static void print_viable(const json_t *backend, const char *key)
{
    const json_t *list = json_object_get(backend, key), *row;
    size_t i;

    json_array_foreach(list, i, row)
    {
        bool viable = json_is_true(json_object_get(row, "viable"));
        const char *more = inspect_text(row, viable ? "note" : "reason");

        printf("  %-12s%-12s%s%s%s\n", i ? "" : key, inspect_text(row, "name"),
               viable ? "viable" : "not viable", *more ? (viable ? ", " : ": ") : "", more);
    }
}

#define OPTION_COLUMN 27
#define LINE_COLUMNS 100

/* Words at OPTION_COLUMN, broken at blanks and bars. */
static void print_wrapped(const char *words)
{
    size_t column = 0;

    while (*words) {
        size_t n = strcspn(words, " |"), blank = words[n] == ' ';

        n += words[n] == '|';
        if (column && OPTION_COLUMN + column + n > LINE_COLUMNS)
            column = 0;
        if (!column)
            printf("\n%*s", OPTION_COLUMN, "");
        else if (words[-1] == ' ')
            printf(" ");
        printf("%.*s", (int)n, words);
        column += n + blank;
        words += n + blank;
    }
}

/* Prints the allowed values: "uv|shm" or "1 to 64". */
static void print_allowed(const json_t *option)
{
    const json_t *choices = json_object_get(option, "choices"), *row;
    const json_t *end[2] = { json_object_get(option, "min"), json_object_get(option, "max") };
    char words[1024] = "one of ";
    size_t i;

    if (choices) {
        json_array_foreach(choices, i, row)
        {
            size_t n = strlen(words);

            snprintf(words + n, sizeof words - n, "%s%s", i ? "|" : "", json_string_value(row));
        }
        print_wrapped(words);
    }
    if (!end[0])
        return;
    for (i = 0; i < 2; i++) {
        if (!end[i])
            printf(" and more");
        else if (json_is_string(end[i]))
            printf("%s%s", i ? " to " : ", ", json_string_value(end[i]));
        else
            printf("%s%" JSON_INTEGER_FORMAT, i ? " to " : ", ", json_integer_value(end[i]));
    }
}

/* Prints one option; `outer` is the list of maps that it belongs to, or NULL. */
static void print_option(const json_t *option, const char *outer)
{
    char name[128];

    snprintf(name, sizeof name, "%s%s%s", outer ? outer : "", outer ? "[]." : "",
             inspect_text(option, "name"));
    printf("    %-*s %s, default %s", OPTION_COLUMN - 5, name, inspect_text(option, "type"),
           *inspect_text(option, "default") ? inspect_text(option, "default") : "\"\"");
    print_allowed(option);
    print_wrapped(inspect_text(option, "help"));
    printf("\n");
}

static void print_plugin(const json_t *b, const char *kind)
{
    const json_t *flags = json_object_get(b, "flags"), *row, *of_map;
    const char *key;
    size_t i, k;

    printf("\n%s%s %s - %s\n", kind, inspect_text(b, "name"), inspect_text(b, "version"),
           inspect_text(b, "summary"));
    printf("  %-12s%s\n", "file", inspect_text(b, "path"));
    printf("  %-12s%s\n", "abi", inspect_text(b, "abi"));
    if (json_array_size(flags)) {
        printf("  %-12s", "flags");
        json_array_foreach(flags, i, row) printf("%s%s", i ? ", " : "", json_string_value(row));
        printf("\n");
    }
    print_viable(b, "transports");
    print_viable(b, "channels");
    json_object_foreach((json_t *)(uintptr_t)json_object_get(b, "probe"), key, row)
        printf("  %-12s%s\n", key, json_string_value(row));
    json_array_foreach(json_object_get(b, "options"), i, row)
    {
        if (i == 0)
            printf("  options\n");
        print_option(row, NULL);
        json_array_foreach(json_object_get(row, "keys"), k, of_map)
            print_option(of_map, inspect_text(row, "name"));
    }
}

static void print_all(const json_t *all)
{
    const json_t *list = json_object_get(all, "backends"), *row;
    const json_t *stores = json_object_get(all, "stores");
    size_t i;

    printf("tenrec %s, %zu backend%s", inspect_text(all, "version"), json_array_size(list),
           json_array_size(list) == 1 ? "" : "s");
    if (json_array_size(stores))
        printf(", %zu store%s", json_array_size(stores), json_array_size(stores) == 1 ? "" : "s");
    json_array_foreach(json_object_get(all, "folders"), i, row)
        printf("%s%s", i ? ", " : "; plugin folders: ", json_string_value(row));
    printf("\n");
    printf("\nworker\n  options\n");
    json_array_foreach(json_object_get(all, "worker"), i, row) print_option(row, NULL);
    printf("\nsecurity\n  options\n");
    json_array_foreach(json_object_get(all, "security"), i, row) print_option(row, NULL);
    json_array_foreach(list, i, row) print_plugin(row, "");
    json_array_foreach(stores, i, row) print_plugin(row, "store ");
    json_array_foreach(json_object_get(all, "unusable"), i, row)
    {
        if (i == 0)
            printf("\nnot usable\n");
        printf("  %s: %s\n", inspect_text(row, "path"), inspect_text(row, "reason"));
    }
    list = json_object_get(all, "values");
    if (list)
        printf("\nin force with %s\n", inspect_text(all, "config"));
    json_array_foreach(list, i, row)
        printf("  %-44s %-28s %s\n", inspect_text(row, "key"), inspect_text(row, "value"),
               inspect_text(row, "source"));
}

/* ---- the command -------------------------------------------------------------------- */

static bool on_folder(void *arg, const char *folder)
{
    json_array_append_new(arg, json_string(folder));
    return false;
}

static int info_info(const struct tool *self, const char *path, bool as_json)
{
    json_t *all = json_pack("{s:s, s:o, s:o, s:[], s:[], s:[], s:[]}", "version",
                            tenrec_version_text(), "worker", worker_list(), "security",
                            security_list(), "backends", "stores", "unusable", "folders");
    tenrec_status st = TENREC_OK;
    tenrec_error err;

    plugin_folders_each(on_folder, json_object_get(all, "folders"));
    loader_list(on_file, all);
    if (path)
        st = collect_config(path, all, &err);
    if (st == TENREC_OK) {
        backend_each(TENREC_PLUGIN_BACKEND, on_plugin, json_object_get(all, "backends"));
        backend_each(TENREC_PLUGIN_STORE, on_plugin, json_object_get(all, "stores"));
        if (!as_json)
            print_all(all);
        else if (json_dumpf(all, stdout, JSON_INDENT(2)) == 0) /* main reports a failure */
            putchar('\n');
    }
    json_decref(all);
    return st ? tool_fail(self, "%s", err.text) : TOOL_OK;
}

static int info_main(const struct tool *self, int argc, char **argv)
{
    struct outside o = { .limit_ms = OUTSIDE_LIMIT_MS };
    const char *worker = NULL;
    bool as_json = false;
    const struct tool_option option[] = { OUTSIDE_OPTIONS(o),
                                          { "worker", 'w', TOOL_TEXT, &worker, 0, 0 },
                                          { "json", 'j', TOOL_FLAG, &as_json, 0, 0 } };
    int c = tool_options(self, argc, argv, false, option, sizeof option / sizeof option[0]);

    if (c != TOOL_GO_ON)
        return c;
    if (optind < argc)
        return tool_misuse(self, "unknown argument '%s'", argv[optind]);
    if (worker)
        return inspect(self, &o, worker, as_json);
    if (o.store || o.group || o.secret_file || o.limit_ms != OUTSIDE_LIMIT_MS)
        return tool_misuse(self, "--store, --group, --secret-file and --timeout require --worker");
    return info_info(self, o.config, as_json);
}

const struct tool tool_info = {
    .name = "info",
    .usage = "[--config F] [--json] [--worker NAME [--store URL] [--group G] [--timeout D]]",
    .summary = "show backends, their options, and the transports that work here",
    .help = "Lists the plugins found in the folders of TENREC_PLUGIN_PATH and among the installed\n"
            "ones: version, file, options with type, default and help, and which transports and\n"
            "channels work on this machine (or why not); before them the keys of 'worker:'\n"
            "and 'security:'. A plugin\n"
            "that cannot be used is listed at the end (\"unusable\" in JSON) with the reason; the "
            "exit\n"
            "status is still 0. Each plugin is first loaded in a process of its own.\n"
            "\n"
            "  -c, --config F   also the values in force with this config, and the source of each\n"
            "  -j, --json       one JSON object\n"
            "\n"
            "With --worker the command shows the counters and states of a worker of a running\n"
            "group and of its backends. It calls the worker from outside, as 'tenrec ping' does.\n"
            "\n"
            "  -w, --worker W   name of the worker\n" OUTSIDE_HELP,
    .main = info_main,
};
