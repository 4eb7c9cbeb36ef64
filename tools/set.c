/* SPDX-License-Identifier: Apache-2.0 */
/* set.c - `tenrec set`: changes a setting of a worker that runs. */
#include "outside.h"
#include "tool.h"

#include <getopt.h>
#include <string.h>
#include <tenrec/rpc.h>

static int set_set(const struct tool *self, struct outside *o, const char *name, const char *key,
                   const char *value)
{
    const struct tenrec_value args[] = { tenrec_value_text(key), tenrec_value_text(value) };
    struct tenrec_call_options call;
    tenrec_error err;
    tenrec_status st = outside_open(o, &err);

    if (st == TENREC_OK) {
        call = outside_call(o);
        st = tenrec_rpc_sync(o->worker, name, "tenrec.set", args, 2, &call, NULL, &err);
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
    int c = tool_options(self, argc, argv, false, option, sizeof option / sizeof option[0]);
    char *value;

    if (c != TOOL_GO_ON)
        return c;
    if (argc - optind != 2)
        return tool_misuse(self, "expected a worker and a setting, got %d word%s", argc - optind,
                           argc - optind == 1 ? "" : "s");
    value = strchr(argv[optind + 1], '=');
    if (!value || value == argv[optind + 1])
        return tool_misuse(self, "'%s' is no setting, expected KEY=VALUE", argv[optind + 1]);
    *value = '\0';
    return set_set(self, &o, argv[optind], argv[optind + 1], value + 1);
}

const struct tool tool_set = {
    .name = "set",
    .usage = "WORKER KEY=VALUE " OUTSIDE_USAGE,
    .summary = "change a setting of a worker that runs",
    .help =
        "Changes one of these:\n"
        "\n"
        "  log_level=LEVEL             error, warn, info, debug or trace, of the whole process\n"
        "  worker.rpc_timeout=DURATION the timeout of calls that set none\n"
        "  backends.NAME.options.rules=RULES\n"
        "                              the faults of a backend 'faulty', in place of all others\n"
        "\n"
        "A value is written as in YAML: 'backends.faulty.options.rules=[{do: drop, on: [CALL]}]'.\n"
        "The worker obeys callers that have proved the group secret, and that security.allow lets\n"
        "call the function tenrec.set. It logs the change.\n"
        "\n" OUTSIDE_HELP,
    .main = set_main,
};
