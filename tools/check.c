/* SPDX-License-Identifier: Apache-2.0 */
/* check.c - `tenrec check`: checks a config without starting anything. */
#include "core/base/clock.h"
#include "entry.h"
#include "group/meeting/meeting.h"
#include "group/store/store.h"
#include "observe/metrics/metrics.h"
#include "security/proof/security.h"
#include "tool.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STDIN "stdin"  /* its name in messages */
#define MOST (2 << 20) /* bytes to read: more than a configuration may have */

static tenrec_status load_stdin(struct tenrec_config **ret, tenrec_error *err)
{
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
        st = tenrec_config_parse(text, STDIN, ret, err);
    free(text);
    return st;
}

/* path   of the config; NULL for stdin */
static tenrec_status check_check(const char *path, tenrec_error *err)
{
    struct tenrec_config *config = NULL;
    struct config_settings *settings;
    struct security *security = NULL;
    char scheme[STORES_SCHEME_MAX];
    struct entries entries;
    tenrec_status st = path ? tenrec_config_load(path, &config, err) : load_stdin(&config, err);

    if (st == TENREC_OK && (st = entries_try(config, err)) != TENREC_OK)
        tenrec_config_drop(config);
    if (st)
        return st;
    st = config_settings_make(config, &settings, err);
    if (!st) {
        st = rendezvous_check_settings(settings, err);
        if (!st)
            st = stores_check(config, stores_plugin_scheme(settings->init_method, scheme), err);
        config_settings_drop(settings);
    }
    if (!st)
        st = security_open(config, CLOCK_NEVER, &security, err);
    if (!st)
        st = metrics_check(config, err);
    if (!st)
        st = entries_open(config, &entries, err);
    if (!st) {
        printf("%s: ok, %zu backend%s:", path ? path : STDIN, entries.n, entries.n == 1 ? "" : "s");
        for (size_t i = 0; i < entries.n; i++) {
            const struct config_layer *l = &entries.v[i].layer;

            printf("%s %s", i ? "," : "", l->name);
            if (l->wraps)
                printf(" (wraps %s)", l->wraps);
        }
        for (size_t i = 0; i < entries.n_stores; i++)
            printf("%s %s",
                   i                       ? ","
                   : entries.n_stores == 1 ? "; 1 store:"
                                           : "; stores:",
                   entries.v[entries.n + i].layer.name);
        for (size_t i = 0; i < entries.n_observers; i++)
            printf("%s %s", i ? "," : "; observers:",
                   entries.v[entries.n + entries.n_stores + i].layer.name);
        printf("; security: %s (%s)\n", security_mode_name(security->mode), security->mode_source);
        entries_close(&entries);
    }
    security_drop(security);
    tenrec_config_drop(config);
    return st;
}

static int check_main(const struct tool *self, int argc, char **argv)
{
    const char *path;
    tenrec_error err;
    int c = tool_options(self, argc, argv, false, NULL, 0);

    if (c != TOOL_GO_ON)
        return c;
    if (argc - optind != 1)
        return tool_misuse(self, "takes one file, got %d", argc - optind);
    path = strcmp(argv[optind], "-") == 0 ? NULL : argv[optind];
    if (check_check(path, &err) == TENREC_OK)
        return TOOL_OK;
    fflush(stdout);
    path = path ? path : STDIN;
    if (strncmp(err.text, path, strlen(path)) != 0)
        return tool_fail(self, "%s", err.text);
    /* The text begins with file:line:column, which editors can jump to. */
    fprintf(stderr, "%s\n", err.text);
    return TOOL_FAILED;
}

const struct tool tool_check = {
    .name = "check",
    .usage = "F|-",
    .summary = "check a config without starting anything",
    .help =
        "Reads the config F, or stdin for -, loads the plugins of all its backends and stores\n"
        "and checks their options, each first in a process of its own, so that a plugin that\n"
        "crashes or hangs is named. The exit status is 0 for a valid config; else 1, with one\n"
        "line on stderr: file:line:column and the error. The environment overrides the file as\n"
        "it does for a worker.",
    .main = check_main,
};
