/* SPDX-License-Identifier: Apache-2.0 */
/* set.c - `tenrec set`: changes settings of a worker that runs. */
#include "outside.h"
#include "tool.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenrec/observe.h>

enum { MOST = 64 };

/* Takes KEY=VALUE apart, in place. */
static bool set_split(char *word, struct tenrec_setting *ret)
{
    char *value = strchr(word, '=');

    if (!value || value == word)
        return false;
    *value = '\0';
    *ret = (struct tenrec_setting){ word, value + 1 };
    return true;
}

static int set_set(const struct tool *self, struct outside *o, const char *name,
                   const struct tenrec_setting *setting, size_t n)
{
    struct tenrec_call_options call;
    tenrec_error err;
    tenrec_status st = outside_open(o, &err);

    if (st == TENREC_OK) {
        call = outside_call(o);
        st = tenrec_worker_reconfigure(o->worker, name, setting, n, &call, &err);
        if (st != TENREC_OK && !(err.flags & TENREC_ERROR_CALLEE))
            outside_explain(o, name, &err);
    }
    outside_close(o);
    return st == TENREC_OK ? TOOL_OK : tool_fail(self, "%s", err.text);
}

static int set_main(const struct tool *self, int argc, char **argv)
{
    struct outside o = { .command = self->name, .limit_ms = OUTSIDE_LIMIT_MS };
    const struct tool_option option[] = { OUTSIDE_OPTIONS(o) };
    struct tenrec_setting setting[MOST];
    size_t n = 0;
    int c = tool_options(self, argc, argv, false, option, sizeof option / sizeof option[0]);

    if (c != TOOL_GO_ON)
        return c;
    if (argc - optind < 2 || argc - optind > MOST + 1)
        return tool_misuse(self, "expected a worker and 1 to %d settings, got %d word%s", MOST,
                           argc - optind, argc - optind == 1 ? "" : "s");
    for (int i = optind + 1; i < argc; i++)
        if (!set_split(argv[i], &setting[n++]))
            return tool_misuse(self, "'%s' is no setting, expected KEY=VALUE", argv[i]);
    return set_set(self, &o, argv[optind], setting, n);
}

const struct tool tool_set = {
    .name = "set",
    .usage = "WORKER KEY=VALUE... [--store URL] [--config F] [--group G] [--timeout D]",
    .summary = "change settings of a worker that runs",
    .help =
        "Changes all settings, or none if one of them is wrong:\n"
        "\n"
        "  log_level=LEVEL       error, warn, info, debug or trace, of the whole process\n"
        "  worker.KEY=VALUE      keys and options that 'tenrec info' marks with\n"
        "  backends.NAME.options.KEY=VALUE        \"may change\"\n"
        "\n"
        "A value is written as in YAML: 'backends.faulty.options.rules=[{do: drop, on: [CALL]}]'.\n"
        "The worker obeys its own user on its own host, and callers that its configuration names\n"
        "in security.allow for the function tenrec.set. It logs the change.\n"
        "\n" OUTSIDE_HELP,
    .main = set_main,
};
