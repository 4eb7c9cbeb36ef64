/* SPDX-License-Identifier: Apache-2.0 */
/* check.c - `tenrec check`: checks a config without starting anything. */
#include "core/base/clock.h"
#include "entry.h"
#include "group/meeting/meeting.h"
#include "group/store/store.h"
#include "observe/metrics/metrics.h"
#include "outside.h"
#include "security/proof/security.h"
#include "tool.h"

#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STDIN "stdin"  /* its name in messages */
#define MOST (2 << 20) /* bytes to read: more than a configuration may have */

struct check {
    const char *name; /* of the file in messages */
    json_t *mistakes;
    struct tenrec_config *config; /* without the mistakes that were found; NULL: none was read */
    struct mistakes tell;
};

/* ---- mistakes -------------------------------------------------------------------- */

/* Takes each mistake once: a plugin is asked for its entry, and for what names the entry. */
static void check_add(void *arg, const tenrec_error *err)
{
    const struct check *c = arg;
    const size_t n = strlen(c->name);
    unsigned line, column;
    json_t *known, *mistake;
    size_t i;

    json_array_foreach(c->mistakes, i, known)
    {
        if (strcmp(inspect_text(known, "text"), err->text) == 0)
            return;
    }
    mistake = json_pack("{s:o*}", "text", json_string(err->text));
    if (strncmp(err->text, c->name, n) == 0 &&
        sscanf(err->text + n, ":%u:%u:", &line, &column) == 2) {
        json_object_set_new(mistake, "line", json_integer(line));
        json_object_set_new(mistake, "column", json_integer(column));
    }
    json_array_append_new(c->mistakes, mistake);
}

static void check_took(struct check *c, tenrec_status st, const tenrec_error *err)
{
    if (st != TENREC_OK)
        check_add(c, err);
}

/* ---- reading --------------------------------------------------------------------- */

static tenrec_status load_stdin(struct check *c, tenrec_error *err)
{
    const struct config_mistakes from = mistakes_of_config(&c->tell);
    char *text = calloc(MOST + 1, 1);
    size_t n = text ? fread(text, 1, MOST, stdin) : 0;
    tenrec_status st;

    if (!text)
        return tenrec_fail(err, TENREC_ENOMEM, "out of memory");
    if (ferror(stdin))
        st = tenrec_fail_errno(err, TENREC_EOS, errno, "cannot read stdin");
    else if (strlen(text) != n)
        st = tenrec_fail(err, TENREC_ECONFIG, "stdin: YAML must not have a NUL byte");
    else
        st = config_parse_all(text, STDIN, &from, &c->config, err);
    free(text);
    return st;
}

/* ---- the parts of a configuration ------------------------------------------------ */

static tenrec_status check_store(const struct tenrec_config *config, tenrec_error *err)
{
    struct config_settings *settings;
    tenrec_status st = config_settings_make(config, &settings, err);

    if (st != TENREC_OK)
        return st;
    st = rendezvous_check_settings(settings, err);
    if (st == TENREC_OK)
        st = stores_check(config, settings, err);
    config_settings_drop(settings);
    return st;
}

static tenrec_status check_metrics(const struct tenrec_config *config, tenrec_error *err)
{
    return metrics_check(config, false, err);
}

static tenrec_status check_traces(const struct tenrec_config *config, tenrec_error *err)
{
    return metrics_check(config, true, err);
}

struct part {
    tenrec_status (*check)(const struct tenrec_config *config, tenrec_error *err);
    const char *what;
    const struct tenrec_config *config;
};

static void part_try(void *arg, FILE *to)
{
    const struct part *p = arg;
    tenrec_error err;

    (void)to;
    (void)p->check(p->config, &err);
}

/* Asks plugins about what names them, first in a process of its own. */
static void check_parts(struct check *c)
{
    struct part part[] = { { check_store, "the store", c->config },
                           { check_metrics, "the observer of metrics", c->config },
                           { check_traces, "the observer of traces", c->config } };
    tenrec_error err;
    char how[128];

    for (size_t i = 0; i < sizeof part / sizeof part[0]; i++) {
        if (trial_run(part_try, &part[i], NULL, how, sizeof how))
            check_took(c, part[i].check(c->config, &err), &err);
        else
            check_took(c, tenrec_fail(&err, TENREC_EPLUGIN, "checking %s %s", part[i].what, how),
                       &err);
    }
}

/* ---- the report ------------------------------------------------------------------ */

static json_t *entry_names(const struct entry *v, size_t n)
{
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_pack("{s:s, s:s, s:s*}", "name", v[i].layer.name, "plugin",
                                              v[i].layer.plugin, "wraps", v[i].layer.wraps));
    return list;
}

static void print_names(const json_t *list, const char *before)
{
    const json_t *row;
    size_t i;

    json_array_foreach(list, i, row)
    {
        printf("%s %s", i ? "," : before, inspect_text(row, "name"));
        if (json_object_get(row, "wraps"))
            printf(" (wraps %s)", inspect_text(row, "wraps"));
    }
}

static void print_valid(const json_t *all)
{
    const json_t *backends = json_object_get(all, "backends"),
                 *stores = json_object_get(all, "stores");
    const size_t n = json_array_size(backends);

    printf("%s: ok, %zu backend%s", inspect_text(all, "config"), n, n == 1 ? "" : "s");
    print_names(backends, ":");
    print_names(stores, json_array_size(stores) == 1 ? "; 1 store:" : "; stores:");
    print_names(json_object_get(all, "observers"), "; observers:");
    printf("; security: %s (%s)\n", inspect_text(all, "security"),
           inspect_text(all, "security_source"));
}

/* The text begins with file:line:column, which editors can jump to. */
static void print_mistakes(const struct tool *self, const struct check *c)
{
    const json_t *mistake;
    size_t i;

    json_array_foreach(c->mistakes, i, mistake)
    {
        const char *text = inspect_text(mistake, "text");

        if (strncmp(text, c->name, strlen(c->name)) != 0)
            tool_fail(self, "%s", text);
        else
            fprintf(stderr, "%s\n", text);
    }
}

/* What a valid configuration has. */
static void report_fill(json_t *all, const struct entries *e, const struct security *security)
{
    json_object_set_new(all, "backends", entry_names(e->v, e->n));
    json_object_set_new(all, "stores", entry_names(e->v + e->n, e->n_stores));
    json_object_set_new(all, "observers", entry_names(e->v + e->n + e->n_stores, e->n_observers));
    json_object_set_new(all, "security", json_string(security_mode_name(security->mode)));
    json_object_set_new(all, "security_source", json_string(security->mode_source));
}

static void check_plugins(struct check *c, json_t *all)
{
    struct security *security = NULL;
    struct entries entries = { 0 };
    const size_t before = json_array_size(c->mistakes);
    tenrec_error err;

    check_took(c, entries_try(c->config, &c->tell, &err), &err);
    /* A plugin that crashes is not loaded here. */
    if (json_array_size(c->mistakes) == before) {
        check_took(c, entries_open(c->config, &c->tell, &entries, &err), &err);
        check_parts(c);
    }
    check_took(c, security_open(c->config, CLOCK_NEVER, &security, &err), &err);
    if (json_array_size(c->mistakes) == 0)
        report_fill(all, &entries, security);
    entries_close(&entries);
    security_drop(security);
}

static int mistake_compare(const void *a, const void *b)
{
    const json_t *const *x = a, *const *y = b;
    const long long line = inspect_number(*x, "line") - inspect_number(*y, "line");

    return line < 0   ? -1
           : line > 0 ? 1
                      : (int)(inspect_number(*x, "column") - inspect_number(*y, "column"));
}

/* By their places in the file; those of the environment come first. */
static void check_sort(struct check *c)
{
    const size_t n = json_array_size(c->mistakes);
    json_t **v = calloc(n + 1, sizeof *v), *sorted = json_array();

    if (v && sorted) {
        for (size_t i = 0; i < n; i++)
            v[i] = json_array_get(c->mistakes, i);
        qsort(v, n, sizeof(json_t *), mistake_compare);
        for (size_t i = 0; i < n; i++)
            json_array_append(sorted, v[i]);
        json_array_clear(c->mistakes);
        json_array_extend(c->mistakes, sorted);
    }
    json_decref(sorted);
    free(v);
}

static int check_check(const struct tool *self, const char *path, bool as_json)
{
    struct check c = { .name = path ? path : STDIN, .mistakes = json_array() };
    json_t *all = json_pack("{s:o*, s:O}", "config", json_string(c.name), "mistakes", c.mistakes);
    struct config_mistakes from;
    tenrec_error err;
    bool valid;

    c.tell = (struct mistakes){ check_add, &c };
    from = mistakes_of_config(&c.tell);
    check_took(&c, path ? config_load_all(path, &from, &c.config, &err) : load_stdin(&c, &err),
               &err);
    if (c.config)
        check_plugins(&c, all);
    check_sort(&c);
    valid = json_array_size(c.mistakes) == 0;
    json_object_set_new(all, "valid", json_boolean(valid));
    if (as_json)
        inspect_print_json(all);
    else if (valid)
        print_valid(all);
    else
        print_mistakes(self, &c);
    tenrec_config_drop(c.config);
    json_decref(c.mistakes);
    json_decref(all);
    return valid ? TOOL_OK : TOOL_FAILED;
}

static int check_main(const struct tool *self, int argc, char **argv)
{
    bool as_json = false;
    const struct tool_option option[] = { { "json", 'j', TOOL_FLAG, &as_json, 0, 0 } };
    int c = tool_options(self, argc, argv, false, option, 1);

    if (c != TOOL_GO_ON)
        return c;
    if (argc - optind != 1)
        return tool_misuse(self, "takes one file, got %d", argc - optind);
    return check_check(self, strcmp(argv[optind], "-") == 0 ? NULL : argv[optind], as_json);
}

const struct tool tool_check = {
    .name = "check",
    .usage = "[--json] F|-",
    .summary = "check a config without starting anything",
    .help =
        "Reads the config F, or stdin for -, loads the plugins of all its backends and stores\n"
        "and checks their options, each first in a process of its own, so that a plugin that\n"
        "crashes or hangs is named. Plugins are asked about the URL of init_method and the\n"
        "addresses of 'observe:', too. The exit status is 0 for a valid config; else 1, with a\n"
        "line on stderr for each mistake: file:line:column and the error. A file that is no YAML\n"
        "has one mistake. The environment overrides the file as it does for a worker.\n"
        "\n"
        "  -j, --json       JSON, one object a line: valid, mistakes (text, line, column)",
    .main = check_main,
};
