/* SPDX-License-Identifier: Apache-2.0 */
/* top.c - `tenrec top`: the load of a running group. */
#include "top/view.h"

#include "core/base/text.h"

#include <getopt.h>

enum { INTERVAL_MS = 2000, LEAST_MS = 100, MOST_SAMPLES = 1000000 };

static int top_show(const struct tool *self, struct sampler *s, const struct print_options *print)
{
    tenrec_error err;
    int status;

    if (sampler_start(s, &err) == TENREC_OK)
        status = print_samples(self, s, print);
    else
        status = tool_fail(self, "%s", err.text);
    sampler_finish(s);
    return status;
}

static int top_check(const struct tool *self, const struct sampler *s,
                     const struct print_options *print)
{
    struct suggestion near;

    if (s->interval_ms < LEAST_MS)
        return tool_misuse(self, "--interval is %llums, expected at least %dms",
                           (unsigned long long)s->interval_ms, LEAST_MS);
    if (print->by_host && print->as_json)
        return tool_misuse(self, "--by-host is for tables: JSON has the host of each worker");
    if (table_column_find(&view_workers_columns, print->sort) < 0) {
        suggest_init(&near, print->sort);
        for (int i = 0; i < view_workers_columns.n_columns; i++)
            suggest_try(&near, view_workers_columns.column[i].key);
        return tool_misuse(self, "--sort '%s' is no column%s", print->sort, suggest_hint(&near));
    }
    return TOOL_GO_ON;
}

static int top_main(const struct tool *self, int argc, char **argv)
{
    struct sampler s = { .outside = { .command = self->name, .limit_ms = OUTSIDE_LIMIT_MS },
                         .interval_ms = INTERVAL_MS };
    struct print_options print = { .sort = "name" };
    bool once = false;
    const struct tool_option option[] = {
        OUTSIDE_OPTIONS(s.outside),
        { "interval", 'i', TOOL_DURATION, &s.interval_ms, 1, 0 },
        { "sort", '\0', TOOL_TEXT, &print.sort, 0, 0 },
        { "by-host", '\0', TOOL_FLAG, &print.by_host, 0, 0 },
        { "once", '1', TOOL_FLAG, &once, 0, 0 },
        { "count", 'N', TOOL_NUMBER, &print.samples, 1, MOST_SAMPLES },
        { "json", 'j', TOOL_FLAG, &print.as_json, 0, 0 },
    };
    int c = tool_options(self, argc, argv, false, option, sizeof option / sizeof option[0]);

    if (c != TOOL_GO_ON)
        return c;
    if (argc > optind)
        return tool_misuse(self, "takes no argument, got '%s'", argv[optind]);
    c = top_check(self, &s, &print);
    if (c != TOOL_GO_ON)
        return c;
    if (print.as_json)
        s.outside.command = NULL;
    if (once)
        print.samples = 1;
    return top_show(self, &s, &print);
}

const struct tool tool_top = {
    .name = "top",
    .usage = OUTSIDE_USAGE "\n"
                           "                  [--interval D] [--sort KEY] [--by-host] "
                           "[--once | --count N] [--json]",
    .summary = "show the load of a running group",
    .help =
        "Prints the workers of a group as a table after each interval, until a signal. A worker\n"
        "that does not answer within the interval is silent, a process of this host that is\n"
        "stopped (SIGSTOP) is stopped, a process that is gone is lost. The calls by which the\n"
        "command reads a worker are not counted.\n"
        "\n" OUTSIDE_HELP_GROUP
        "  -t, --timeout D  limit of the search for the group, as 500ms or 5s (default)\n"
        "  -i, --interval D  time between two samples (2s), at least 100ms\n"
        "      --sort KEY   column (name): name|id|state|made|served|p50|p99|server_p50|\n"
        "                   server_p99|active|queued|busy|blocked|pool|shared|mapped|refs|\n"
        "                   weights|faults|timeouts|late|ways\n"
        "      --by-host    a row for each host: sums, the longest durations, and the worker that\n"
        "                   is the worst by --sort, or by p99\n"
        "  -1, --once       print one table after one interval\n"
        "  -N, --count N    print N samples\n"
        "  -j, --json       JSON, one object a line: each sample",
    .main = top_main,
};
