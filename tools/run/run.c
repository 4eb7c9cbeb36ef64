/* SPDX-License-Identifier: Apache-2.0 */
/* run.c - `tenrec run`: N local workers of one program. */
#include "run/workers.h"
#include "tool.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#define MOST_WORKERS 32768 /* ids are 16 bit */
#define MOST_RESTARTS 9999
#define RESTARTS 3 /* default */

/* The options of the command line. */
struct wish {
    struct workers_plan plan;
    const char *config, *trace; /* NULL: not given */
    const char *elastic, *serve;
    int restarts;   /* -1: not given */
    char host[256]; /* of --serve */
};

/* "MIN:MAX", or one number for both. */
static bool read_range(const char *text, struct elastic_plan *ret)
{
    char first[16];
    const char *colon = strchr(text, ':');
    size_t len = colon ? (size_t)(colon - text) : strlen(text);
    int64_t min, max;

    snprintf(first, sizeof first, "%.*s", (int)(len < 16 ? len : 15), text);
    if (!tool_number(first, 1, MOST_WORKERS, &min) ||
        !tool_number(colon ? colon + 1 : first, min, MOST_WORKERS, &max))
        return false;
    ret->min = (int)min;
    ret->max = (int)max;
    return true;
}

/* "HOST", "HOST:PORT", "[V6]:PORT"; a V6 address alone has no port. */
static bool read_address(struct wish *w, const char *text)
{
    const char *colon = strrchr(text, ':');
    bool bracket = *text == '[', has_port = bracket || (colon && strchr(text, ':') == colon);
    size_t len = has_port && colon ? (size_t)(colon - text) : strlen(text);
    int64_t port = 0;

    if (has_port && !tool_number(colon ? colon + 1 : "", 0, UINT16_MAX, &port))
        return false;
    if (bracket && (len < 3 || text[len - 1] != ']'))
        return false;
    snprintf(w->host, sizeof w->host, "%.*s", (int)(len - (bracket ? 2 : 0)), text + bracket);
    w->plan.serve_at = w->host;
    w->plan.serve_port = (uint16_t)port;
    return len && len < sizeof w->host;
}

/* Checks which options go together, and sets the number of workers where it is optional. */
static int check_elastic(const struct tool *self, struct wish *w)
{
    struct workers_plan *plan = &w->plan;

    if (!plan->elastic.max) {
        if (w->restarts >= 0 || plan->elastic.join)
            return tool_misuse(self, "%s requires --elastic MIN:MAX",
                               plan->elastic.join ? "--join" : "--restarts");
        return TOOL_OK;
    }
    if (!plan->n)
        plan->n = plan->elastic.max;
    if (plan->n < plan->elastic.min || plan->n > plan->elastic.max)
        return tool_misuse(self, "-n is %d, expected %d to %d as --elastic says", plan->n,
                           plan->elastic.min, plan->elastic.max);
    if (plan->keep_going || w->trace)
        return tool_misuse(self, "--elastic and %s exclude each other",
                           w->trace ? "--trace" : "--keep-going");
    if (plan->elastic.join && plan->serve_at)
        return tool_misuse(self, "--join and --serve exclude each other: the store exists or is "
                                 "served here");
    return TOOL_OK;
}

/* Reads the options. Returns TOOL_GO_ON or the exit status. */
static int read_options(const struct tool *self, int argc, char **argv, struct wish *w)
{
    struct workers_plan *plan = &w->plan;
    const struct tool_option option[] = {
        { "config", 'c', TOOL_TEXT, &w->config, 0, 0 },
        { "elastic", 'e', TOOL_TEXT, &w->elastic, 0, 0 },
        { "grace", '\0', TOOL_DURATION, &plan->grace_ms, 0, 0 },
        { "insecure", '\0', TOOL_FLAG, &plan->insecure, 0, 0 },
        { "join", '\0', TOOL_TEXT, &plan->elastic.join, 0, 0 },
        { "keep-going", 'k', TOOL_FLAG, &plan->keep_going, 0, 0 },
        { "num-workers", 'n', TOOL_NUMBER, &plan->n, 1, MOST_WORKERS },
        { "restarts", 'r', TOOL_NUMBER, &w->restarts, 0, MOST_RESTARTS },
        { "secret-file", 'S', TOOL_TEXT, &plan->secret_file, 0, 0 },
        { "serve", '\0', TOOL_TEXT, &w->serve, 0, 0 },
        { "trace", '\0', TOOL_TEXT, &w->trace, 0, 0 },
        { "verbose", 'v', TOOL_FLAG, &plan->verbose, 0, 0 },
    };
    int c = tool_options(self, argc, argv, true, option, sizeof option / sizeof option[0]);

    if (c != TOOL_GO_ON)
        return c;
    if (w->elastic && !read_range(w->elastic, &plan->elastic))
        return tool_misuse(self, "--elastic is '%s', expected MIN:MAX as 2:8, at most %d",
                           w->elastic, MOST_WORKERS);
    if (w->serve && !read_address(w, w->serve))
        return tool_misuse(self, "--serve is '%s', expected ADDRESS or ADDRESS:PORT", w->serve);
    if ((c = check_elastic(self, w)) != TOOL_OK)
        return c;
    if (plan->insecure && plan->secret_file)
        return tool_misuse(self, "--insecure and --secret-file exclude each other");
    plan->elastic.restarts = w->restarts >= 0 ? w->restarts : RESTARTS;
    if (!plan->n)
        return tool_misuse(self, "the number of workers is missing: give -n N");
    if (optind >= argc)
        return tool_misuse(self, "the program is missing: give it after the options");
    plan->argv = argv + optind;
    return TOOL_GO_ON;
}

static int run_main(const struct tool *self, int argc, char **argv)
{
    struct wish w = {
        .plan = { .tool = self, .grace_ms = 10000, .prefix = true },
        .config = secure_getenv("TENREC_CONFIG"),
        .restarts = -1,
    };
    struct parts parts;
    char *path = NULL;
    int c = read_options(self, argc, argv, &w);

    if (c != TOOL_GO_ON)
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
        w.plan.set = parts.setting;
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
        "-n N [--config F] [--grace D] [--keep-going] [--secret-file F|--insecure] [--serve A]\n"
        "                  [--trace FILE] [--verbose] [--] PROGRAM ARGS\n"
        "       tenrec run --elastic MIN:MAX [--restarts K] [-n N] [--join URL] ... PROGRAM ARGS",
    .summary = "start N workers on this machine",
    .help =
        "Starts N processes of PROGRAM with RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE,\n"
        "MASTER_ADDR, MASTER_PORT and TORCHELASTIC_... set as torchrun does, serves their store,\n"
        "puts \"[rank] \" before each line of their output, and waits until all have exited.\n"
        "\n"
        "When a worker fails, the others are terminated (SIGTERM, then SIGKILL). The exit status\n"
        "is that of the worker that failed first, 128 + N if signal N killed it, 127 if PROGRAM\n"
        "was not found, else 0. SIGINT, SIGTERM, SIGHUP and SIGQUIT are forwarded; a second\n"
        "signal kills. The stdin of workers is /dev/null.\n"
        "\n"
        "Only the workers of the run, and processes of the same user, get its group secret, which\n"
        "is random unless the configuration, --secret-file or TENREC_SECRET_FILE names a file.\n"
        "Launchers on several hosts (--serve, --join) need the same file. A run that a worker of\n"
        "another run starts has the secret of that run.\n"
        "\n"
        "  -n, --num-workers N  number of workers\n"
        "  -c, --config F       the config of all workers, in TENREC_CONFIG\n"
        "      --grace D        from SIGTERM to SIGKILL, as 500ms or 10s (default)\n"
        "  -k, --keep-going     a failed worker does not end the others\n"
        "  -S, --secret-file F  the group secret, as 'tenrec secret new' writes it\n"
        "      --insecure       no group secret: every process that reaches them may use the "
        "store\n"
        "                       and call the workers\n"
        "      --serve A[:PORT] serve the store at this address of the machine, for workers of\n"
        "                       other hosts; by default on loopback, any port\n"
        "      --trace FILE     write the calls of all workers as one Chrome trace, for\n"
        "                       ui.perfetto.dev; each worker writes its part at shutdown\n"
        "  -v, --verbose        print the URL of the store, for 'tenrec ping --store'\n"
        "\n"
        "With --elastic no WORLD_SIZE is set: the workers are a dynamic group. Each has a slot,\n"
        "which is its RANK; lines begin with \"[slot.life] \". A worker that fails is restarted\n"
        "in its slot after 0.1 to 5 s, and the others continue; a worker that exits with 0 is\n"
        "done. The run ends with the status of a worker that fails, has no restart left and\n"
        "leaves fewer than MIN that run, wait for a restart or are done. SIGUSR1 adds a slot.\n"
        "\n"
        "  -e, --elastic MIN:MAX  fewest and most slots; N (by default MAX) at first\n"
        "  -r, --restarts K       restarts of each slot; by default 3\n"
        "      --join URL         the workers use this existing store, tcp:// or another, for\n"
        "                         example that of a run with --serve. The group assigns their\n"
        "                         ids, RANK is not set. Without --secret-file the secret is that\n"
        "                         of the launcher of this user that serves the store",
    .main = run_main,
};
