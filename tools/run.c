/* run.c - `tenrec run`: N local workers of one program. */
#include "config/quantity.h"
#include "parts.h"
#include "tool.h"
#include "workers.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#define MOST_WORKERS 32768 /* ids are 16 bit */

/* What the command line asks for. */
struct wish {
    struct workers_plan plan;
    const char *config, *trace; /* NULL: not given */
};

/* Reads the options; *ret_end is set when that was all: the exit status is
 * returned. */
static int read_options(const struct tool *self, int argc, char **argv, struct wish *w,
                        bool *ret_end)
{
    static const struct option option[] = {
        { "config", required_argument, NULL, 'c' }, { "grace", required_argument, NULL, 'g' },
        { "keep-going", no_argument, NULL, 'k' },   { "num-workers", required_argument, NULL, 'n' },
        { "trace", required_argument, NULL, 't' },  { "verbose", no_argument, NULL, 'v' },
        { "help", no_argument, NULL, 'h' },         { NULL, 0, NULL, 0 },
    };
    tenrec_error err;
    int64_t n = 0;
    int c;

    opterr = 0;
    *ret_end = true;
    while ((c = getopt_long(argc, argv, "+:n:c:g:kt:vh", option, NULL)) != -1) {
        if (c == 'h') {
            tool_print_help(self);
            return TOOL_OK;
        } else if (c == 'c') {
            w->config = optarg;
        } else if (c == 't') {
            w->trace = optarg;
        } else if (c == 'k') {
            w->plan.keep_going = true;
        } else if (c == 'v') {
            w->plan.verbose = true;
        } else if (c == 'n') {
            if (!tool_number(optarg, 1, MOST_WORKERS, &n))
                return tool_misuse(self, "-n is '%s', expected a number from 1 to %d", optarg,
                                   MOST_WORKERS);
        } else if (c == 'g') {
            if (quantity_duration(optarg, false, &w->plan.grace_ms, &err))
                return tool_misuse(self, "--grace: %s", err.text);
        } else {
            return tool_bad_option(self, c, argv);
        }
    }
    if (!n)
        return tool_misuse(self, "how many workers? give -n N");
    if (optind >= argc)
        return tool_misuse(self, "which program? give it after the options");
    w->plan.n = (int)n;
    w->plan.argv = argv + optind;
    *ret_end = false;
    return TOOL_OK;
}

static int run_main(const struct tool *self, int argc, char **argv)
{
    struct wish w = { .plan = { .tool = self, .grace_ms = 10000, .prefix = true },
                      .config = getenv("TENREC_CONFIG") };
    struct parts parts;
    char *path = NULL;
    bool end;
    int c = read_options(self, argc, argv, &w, &end);

    if (end)
        return c;
    if (w.config && *w.config && !tool_readable(w.config, &path))
        return tool_fail(self, "cannot read the config '%s': %s", w.config, strerror(errno));
    w.plan.config = path;
    if (w.trace) {
        c = parts_open(self, w.trace, &parts);
        if (c != TOOL_OK) {
            free(path);
            return c;
        }
        w.plan.set = &parts.setting;
        w.plan.n_set = 1;
    }
    c = workers_run(&w.plan);
    if (w.trace && parts_join(self, &parts, w.plan.n, w.plan.keep_going) != TOOL_OK && c == TOOL_OK)
        c = TOOL_FAILED;
    free(path);
    return c;
}

const struct tool tool_run = {
    .name = "run",
    .usage =
        "-n N [--config F] [--grace D] [--keep-going] [--trace FILE] [--verbose] [--] PROGRAM ARGS",
    .summary = "start N workers on this machine",
    .help =
        "Starts N processes of PROGRAM with RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE,\n"
        "MASTER_ADDR and MASTER_PORT set as torchrun does, serves the store that they meet in,\n"
        "puts \"[rank] \" before each line they write, and waits for their end.\n"
        "\n"
        "When one fails the others are ended (SIGTERM, then SIGKILL). The exit status is that\n"
        "of the worker that failed first, 128 + N when signal N killed it, 127 when PROGRAM\n"
        "was not found, else 0. SIGINT, SIGTERM, SIGHUP and SIGQUIT are forwarded; a second\n"
        "one kills. Workers read nothing from the terminal: their stdin is /dev/null.\n"
        "\n"
        "  -n, --num-workers N  how many\n"
        "  -c, --config F       the config of all workers, in TENREC_CONFIG\n"
        "  -g, --grace D        from SIGTERM to SIGKILL, as 500ms or 10s (default)\n"
        "  -k, --keep-going     when one fails the others go on; the exit status stays as said\n"
        "  -t, --trace FILE     write the calls of all workers as one Chrome trace, for\n"
        "                       ui.perfetto.dev; each tells what it did when it shuts down\n"
        "  -v, --verbose        say where the store is, for 'tenrec ping --store' from outside",
    .main = run_main,
};
