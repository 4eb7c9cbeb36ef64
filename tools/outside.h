/* SPDX-License-Identifier: Apache-2.0 */
/* outside.h - calls a running group without joining it. */
#ifndef TENREC_TOOLS_OUTSIDE_H
#define TENREC_TOOLS_OUTSIDE_H

#include "tool.h"

#include <stdint.h>
#include <tenrec/observe.h>
#include <tenrec/store.h>

/* The options of the command line. */
struct outside {
    const char *command;     /* says on a terminal how long it waits; NULL: does not */
    const char *store;       /* URL; NULL: the config's init_method */
    const char *config;      /* NULL: the config that a worker would load */
    const char *group;       /* NULL: the config's worker.group */
    const char *secret_file; /* NULL: that of the config, or of a launcher of this user */
    uint64_t limit_ms;       /* of the whole command */
    uint64_t until_ns;       /* set by outside_open */
    struct tenrec_worker *worker;
};

#define OUTSIDE_LIMIT_MS 5000
#define OUTSIDE_USAGE "[--store URL] [--config F] [--group G] [--secret-file F] [--timeout D]"
#define OUTSIDE_HELP                                                                               \
    OUTSIDE_HELP_GROUP                                                                             \
    "  -t, --timeout D  limit of the whole command, as 500ms or 5s (default)"
#define OUTSIDE_HELP_GROUP                                                                         \
    "  -s, --store URL  store of the group: tcp://host:port or file://path; default: the\n"        \
    "                   config's init_method. 'tenrec run --verbose' prints the URL; its\n"        \
    "                   workers have it in MASTER_ADDR and MASTER_PORT\n"                          \
    "  -c, --config F   config with the backend of the group; default: TENREC_CONFIG\n"            \
    "  -g, --group G    name of the group; default: the config's worker.group\n"                   \
    "  -S, --secret-file F  the group secret; default: what the config or the environment\n"       \
    "                   names, or that of the 'tenrec run' of this user that serves the store\n"

#define OUTSIDE_OPTIONS(o)                                                                         \
    { "store", 's', TOOL_TEXT, &(o).store, 0, 0 },                                                 \
        { "config", 'c', TOOL_TEXT, &(o).config, 0, 0 },                                           \
        { "group", 'g', TOOL_TEXT, &(o).group, 0, 0 },                                             \
        { "secret-file", 'S', TOOL_TEXT, &(o).secret_file, 0, 0 },                                 \
    {                                                                                              \
        "timeout", 't', TOOL_DURATION, &(o).limit_ms, 1, 0                                         \
    }

/* Opens the store that --store names, and no group. */
tenrec_status outside_open_store(struct outside *o, struct tenrec_store **ret, tenrec_error *err);

/* Attaches to the group. Call outside_close also after a failure. */
tenrec_status outside_open(struct outside *o, tenrec_error *err);
void outside_close(struct outside *o);

/* Options of a call that ends within the limit. */
struct tenrec_call_options outside_call(const struct outside *o);

/* Adds to the error of a failed call to `name` what the store knows about it. */
void outside_explain(const struct outside *o, const char *name, tenrec_error *err);

/* inspect.c: `tenrec info --worker`: the debug info of a running worker; values of JSON. */

/* Prints the debug info of worker `name`. Returns the exit status. */
int inspect(const struct tool *self, struct outside *o, const char *name, bool as_json);

/* The value of a key of a JSON object; "" or 0 without one. */
struct json_t;
const char *inspect_text(const struct json_t *object, const char *key);
long long inspect_number(const struct json_t *object, const char *key);

/* What --json prints: one object on one line. main reports a failure. */
void inspect_print_json(const struct json_t *object);

/* Prints a map as JSON, with the text `instead` as the value of `key`. */
void inspect_print_map(const struct tenrec_value *map, const char *key, const char *instead);

#endif
