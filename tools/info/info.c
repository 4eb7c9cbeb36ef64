/* SPDX-License-Identifier: Apache-2.0 */
/* info.c - `tenrec info`: the backends and stores of this machine, and the values in force.
 *
 * Everything is collected into one JSON object, from which the text is printed
 * too, so that both agree. */
#include "info/info.h"
#include "core/base/clock.h"
#include "core/config/settings.h"
#include "core/plugin/plugin.h"
#include "core/plugin/plugin_file.h"
#include "entry.h"
#include "group/store/store.h"
#include "outside.h"
#include "security/proof/security.h"
#include "tool.h"

#include <getopt.h>
#include <jansson.h>
#include <stdlib.h>
#include <tenrec/tenrec.h>

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
        st = entries_try(config, NULL, err);
    if (!st)
        st = entries_open(config, NULL, &entries, err);
    if (!st) {
        st = config_show(config, on_value, list, err);
        if (!st)
            st = add_security(config, list, err);
        for (size_t i = 0; !st && i < entries_count(&entries); i++)
            st = options_show(plugin_description(entries.v[i].backend), &entries.v[i].layer,
                              on_value, list, err);
        entries_close(&entries);
    }
    tenrec_config_drop(config);
    return st;
}

/* ---- the command -------------------------------------------------------------------- */

static bool on_folder(void *arg, const char *folder)
{
    json_array_append_new(arg, json_string(folder));
    return false;
}

static int info_info(const struct tool *self, const char *path, const struct info_names *names,
                     bool as_json)
{
    json_t *all = json_pack("{s:s, s:o, s:o, s:o, s:[], s:[], s:[], s:[], s:[]}", "version",
                            tenrec_version_text(), "worker", info_worker_options(), "security",
                            info_security_options(), "observe", info_observe_options(), "backends",
                            "stores", "observers", "unusable", "folders");
    tenrec_status st = TENREC_OK;
    tenrec_error err;

    plugin_folders_each(on_folder, json_object_get(all, "folders"));
    info_find(all, names);
    if (path)
        st = collect_config(path, all, &err);
    if (st == TENREC_OK) {
        info_list(all);
        st = info_choose(all, names, &err);
    }
    if (st == TENREC_OK)
        (as_json ? inspect_print_json : info_print)(all);
    json_decref(all);
    return st ? tool_fail(self, "%s", err.text) : TOOL_OK;
}

/* The store's own counts. A store that is not Tenrec's server counts no requests. */
static json_t *info_collect_store(struct tenrec_store *s, int64_t ms, tenrec_error *err)
{
    json_t *all = NULL;
    int64_t keys;
    void *text;

    if (tenrec_store_num_keys(s, ms, &keys, err) != TENREC_OK)
        return NULL;
    all = json_pack("{s:s, s:I}", "store", tenrec_store_name(s), "keys", (json_int_t)keys);
    if (tenrec_store_get(s, STORE_REQUESTS_KEY, 0, &text, NULL, NULL) == TENREC_OK) {
        json_object_set_new(all, "requests", json_integer(atoll(text)));
        free(text);
    }
    return all;
}

static void info_print_store(const json_t *all, bool as_json)
{
    const json_t *requests = json_object_get(all, "requests");

    if (as_json) {
        inspect_print_json(all);
        return;
    }
    printf("%-10s%s\n", "store", inspect_text(all, "store"));
    printf("%-10s%lld\n", "keys", inspect_number(all, "keys"));
    if (requests)
        printf("%-10s%lld\n", "requests", inspect_number(all, "requests"));
}

static int info_store(const struct tool *self, struct outside *o, bool as_json)
{
    struct tenrec_store *s = NULL;
    json_t *all = NULL;
    tenrec_error err;

    if (outside_open_store(o, &s, &err) == TENREC_OK)
        all = info_collect_store(s, (int64_t)o->limit_ms, &err);
    if (all)
        info_print_store(all, as_json);
    json_decref(all);
    tenrec_store_close(s);
    return all ? TOOL_OK : tool_fail(self, "%s", err.text);
}

static int info_main(const struct tool *self, int argc, char **argv)
{
    struct outside o = { .command = self->name, .limit_ms = OUTSIDE_LIMIT_MS };
    const char *worker = NULL;
    bool as_json = false;
    const struct tool_option option[] = { OUTSIDE_OPTIONS(o),
                                          { "worker", 'w', TOOL_TEXT, &worker, 0, 0 },
                                          { "json", 'j', TOOL_FLAG, &as_json, 0, 0 } };
    int c = tool_options(self, argc, argv, false, option, sizeof option / sizeof option[0]);

    if (c != TOOL_GO_ON)
        return c;
    if (optind < argc && (worker || o.store))
        return tool_misuse(self, "'%s' is no argument with --worker or --store", argv[optind]);
    if (worker) {
        if (as_json)
            o.command = NULL;
        return inspect(self, &o, worker, as_json);
    }
    if (o.group || (!o.store && (o.secret_file || o.limit_ms != OUTSIDE_LIMIT_MS)))
        return tool_misuse(self, "--group requires --worker; --secret-file and --timeout require "
                                 "--worker or --store");
    if (o.store)
        return info_store(self, &o, as_json);
    return info_info(self, o.config, &(struct info_names){ argv + optind, (size_t)(argc - optind) },
                     as_json);
}

const struct tool tool_info = {
    .name = "info",
    .usage = "[PLUGIN ...] [--config F] [--json]\n"
             "       tenrec info --worker NAME " OUTSIDE_USAGE "\n"
             "                  [--json]\n"
             "       tenrec info --store URL [--secret-file F] [--timeout D] [--json]",
    .summary = "show backends, their options, and the transports that work here",
    .help =
        "Lists the plugins found in the folders of TENREC_PLUGIN_PATH and among the installed\n"
        "ones: version, file, options with type, default and help, and which transports and\n"
        "channels work on this machine (or why not); before them the keys of 'worker:',\n"
        "'security:' and 'observe:'. A plugin that cannot be used is listed at the end\n"
        "(\"unusable\" in JSON) with the reason; the exit status is still 0. Each plugin is first\n"
        "loaded in a process of its own. With PLUGIN, a name or the path of a file, only that\n"
        "plugin is shown; 'worker', 'security' and 'observe' show these keys.\n"
        "\n"
        "  -c, --config F   also the values in force with this config, and the source of each\n"
        "  -j, --json       JSON, one object a line\n"
        "\n"
        "With --worker the command shows the counters and states of a worker of a running\n"
        "group and of its backends. It calls the worker from outside, as 'tenrec ping' does.\n"
        "With --store alone it shows how many keys the store has, and how many requests it has\n"
        "answered, if it is a server of Tenrec.\n"
        "\n"
        "  -w, --worker W   name of the worker\n" OUTSIDE_HELP,
    .main = info_main,
};
