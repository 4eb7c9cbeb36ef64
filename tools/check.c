/* check.c - `tenrec check`: is this config right? Starts nothing. */
#include "entry.h"
#include "rpc/setup.h"
#include "tool.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

static tenrec_status check(const char *path, tenrec_error *err)
{
    struct tenrec_config *config = NULL;
    struct config_settings *settings;
    struct entries entries;
    tenrec_status st = tenrec_config_load(path, &config, err);

    if (st)
        return st;
    st = config_settings_make(config, &settings, err);
    if (!st) {
        st = setup_check(settings, err);
        if (!st)
            st = setup_check_stores(config, settings, err);
        config_settings_drop(settings);
    }
    if (!st)
        st = entries_open(config, &entries, err);
    if (!st) {
        printf("%s: ok, %zu backend%s:", path, entries.n, entries.n == 1 ? "" : "s");
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
        printf("\n");
        entries_close(&entries);
    }
    tenrec_config_drop(config);
    return st;
}

static int check_main(const struct tool *self, int argc, char **argv)
{
    static const struct option option[] = { { "help", no_argument, NULL, 'h' },
                                            { NULL, 0, NULL, 0 } };
    tenrec_error err;
    int c;

    opterr = 0;
    while ((c = getopt_long(argc, argv, ":h", option, NULL)) != -1) {
        if (c != 'h')
            return tool_bad_option(self, c, argv);
        tool_print_help(self);
        return TOOL_OK;
    }
    if (argc - optind != 1)
        return tool_misuse(self, "takes one file, got %d", argc - optind);
    if (check(argv[optind], &err) == TENREC_OK)
        return TOOL_OK;
    fflush(stdout);
    if (strncmp(err.text, argv[optind], strlen(argv[optind])) != 0)
        return tool_fail(self, "%s", err.text);
    /* It begins with file:line:column, for editors to jump to. */
    fprintf(stderr, "%s\n", err.text);
    return TOOL_FAILED;
}

const struct tool tool_check = {
    .name = "check",
    .usage = "F",
    .summary = "check a config without starting anything",
    .help =
        "Reads the config F, loads the plugins of all its backends and stores and checks their\n"
        "options. Exit status 0 when all is right; else 1, and one line on stderr that says\n"
        "file:line:column and what is wrong. The environment overrides the file here as it\n"
        "does for a worker.",
    .main = check_main,
};
