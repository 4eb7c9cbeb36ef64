/* SPDX-License-Identifier: Apache-2.0 */
/* dump.c - `tenrec dump`: what a worker does now, and its latest events as a trace. */
#include "core/base/file.h"
#include "outside.h"
#include "tool.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <tenrec/log.h>

enum { DUMP_TEXT = 512 };

/* ---- an answer that is not trusted ---------------------------------------------- */

/* The text of a key without control characters; "" if there is none. */
static const char *dump_text(const struct tenrec_value *map, const char *key,
                             char buf[static DUMP_TEXT])
{
    const struct tenrec_value *v = tenrec_value_find(map, key);

    tenrec_text_escape(buf, DUMP_TEXT, v && v->type == TENREC_VALUE_TEXT ? v->u.text : "", "");
    return buf;
}

static int64_t dump_int(const struct tenrec_value *map, const char *key)
{
    const struct tenrec_value *v = tenrec_value_find(map, key);

    return v && v->type == TENREC_VALUE_INT ? v->u.integer : 0;
}

static bool dump_flag(const struct tenrec_value *map, const char *key)
{
    const struct tenrec_value *v = tenrec_value_find(map, key);

    return v && v->type == TENREC_VALUE_BOOL && v->u.boolean;
}

/* The list of a key, of which only maps count; its length is 0 if it is none. */
static const struct tenrec_value *dump_list(const struct tenrec_value *map, const char *key)
{
    static const struct tenrec_value none = { .type = TENREC_VALUE_ARRAY };
    const struct tenrec_value *v = tenrec_value_find(map, key);

    return v && v->type == TENREC_VALUE_ARRAY ? v : &none;
}

/* ---- for people ------------------------------------------------------------------ */

static const char *span_text(int64_t ns, const char *unknown, char buf[static 24])
{
    const double s = (double)ns / 1e9;

    if (ns < 0)
        snprintf(buf, 24, "%s", unknown);
    else if (s < 1)
        snprintf(buf, 24, "%.3f ms", s * 1e3);
    else
        snprintf(buf, 24, "%.1f s", s);
    return buf;
}

static void print_stack(const struct tenrec_value *h)
{
    const struct tenrec_value *stack = dump_list(h, "stack");
    char text[DUMP_TEXT];

    if (*dump_text(h, "kernel", text))
        printf("%14s%s\n", "", text);
    if (*dump_text(h, "no_stack", text))
        printf("%14sno stack: %s\n", "", text);
    for (uint64_t i = 0; i < stack->n; i++)
        if (stack->u.array[i].type == TENREC_VALUE_TEXT) {
            tenrec_text_escape(text, sizeof text, stack->u.array[i].u.text, "");
            printf("%16s%s\n", "", text);
        }
}

static void print_handlers(const struct tenrec_value *all)
{
    const struct tenrec_value *list = dump_list(all, "handlers");
    char function[DUMP_TEXT], caller[DUMP_TEXT], state[DUMP_TEXT], span[24], thread[24];

    printf("%" PRIu64 " handler%s\n", list->n, list->n == 1 ? "" : "s");
    if (list->n > 0)
        printf("  %-11s %-13s %-10s %-28s %s\n", "FOR", "STATE", "THREAD", "FUNCTION", "CALLER");
    for (uint64_t i = 0; i < list->n; i++) {
        const struct tenrec_value *h = &list->u.array[i];
        if (h->type != TENREC_VALUE_MAP)
            continue;
        snprintf(thread, sizeof thread, dump_int(h, "thread") ? "%" PRId64 : "-",
                 dump_int(h, "thread"));
        printf("  %-11s %-13s %-10s %-28s %s\n", span_text(dump_int(h, "ns"), "-", span),
               dump_text(h, "state", state), thread, dump_text(h, "function", function),
               *dump_text(h, "caller", caller) ? caller : "(no member)");
        print_stack(h);
    }
    if (dump_int(all, "more_handlers") > 0)
        printf("  and %" PRId64 " more\n", dump_int(all, "more_handlers"));
}

static void print_waits(const struct tenrec_value *all)
{
    const struct tenrec_value *list = dump_list(all, "waits");
    char function[DUMP_TEXT], callee[DUMP_TEXT], span[24], left[24];

    printf("%" PRIu64 " own call%s\n", list->n, list->n == 1 ? " that waits" : "s that wait");
    if (list->n > 0)
        printf("  %-11s %-13s %-28s %s\n", "FOR", "LEFT", "FUNCTION", "CALLEE");
    for (uint64_t i = 0; i < list->n; i++) {
        const struct tenrec_value *c = &list->u.array[i];
        if (c->type != TENREC_VALUE_MAP)
            continue;
        printf("  %-11s %-13s %-28s %s\n", span_text(dump_int(c, "ns"), "unknown", span),
               span_text(dump_int(c, "left_ns"), "no limit", left),
               dump_text(c, "function", function), dump_text(c, "callee", callee));
    }
    if (dump_int(all, "more_waits") > 0)
        printf("  and %" PRId64 " more\n", dump_int(all, "more_waits"));
}

static void dump_print(const struct tenrec_value *all, const char *name, const char *path)
{
    printf("%s, process %" PRId64 "\n", name, dump_int(all, "pid"));
    print_handlers(all);
    print_waits(all);
    printf("wrote %s: %" PRId64 " events, for ui.perfetto.dev\n", path, dump_int(all, "events"));
    if (!dump_flag(all, "recorder"))
        printf("calls are not recorded: observe.recorder is false\n");
}

/* ---- the command ------------------------------------------------------------------ */

enum { DUMP_FILES = 1000 };

/* Writes the trace to `output`, or, where that is NULL, to the first of tenrec-NAME-PID.json,
 * tenrec-NAME-PID-2.json, ... that does not exist.
 *
 * path     the name of the file */
static tenrec_status dump_write(const struct tenrec_value *all, const char *name,
                                const char *output, char path[static PATH_MAX], tenrec_error *err)
{
    const struct tenrec_value *trace = tenrec_value_find(all, "trace");
    tenrec_status st;
    int n = snprintf(path, PATH_MAX, "%s", output ? output : "");

    if (n >= PATH_MAX)
        return tenrec_fail(err, TENREC_EINVAL, "the path of --output is too long");
    if (output)
        return private_file_write(path, PRIVATE_FILE_NAMED, trace->u.text, trace->n, err);
    for (int i = 1; i <= DUMP_FILES; i++) {
        n = snprintf(path, PATH_MAX, "tenrec-%s-%" PRId64, name, dump_int(all, "pid"));
        snprintf(path + n, PATH_MAX - (size_t)n, i > 1 ? "-%d.json" : ".json", i);
        st = private_file_write(path, PRIVATE_FILE_NEW, trace->u.text, trace->n, err);
        if (st == TENREC_OK || !err || err->os_errno != EEXIST)
            break;
    }
    return st;
}

static int dump_dump(const struct tool *self, struct outside *o, const char *name,
                     const char *output, bool as_json)
{
    struct tenrec_value *all = NULL;
    const struct tenrec_value *trace;
    struct tenrec_call_options call;
    char path[PATH_MAX];
    tenrec_error err;
    tenrec_status st = outside_open(o, &err);

    if (st == TENREC_OK) {
        call = outside_call(o);
        st = tenrec_worker_inspect(o->worker, name, TENREC_INSPECT_DUMP, &call, &all, &err);
        if (st != TENREC_OK)
            outside_explain(o, name, &err);
    }
    trace = st == TENREC_OK ? tenrec_value_find(all, "trace") : NULL;
    if (st == TENREC_OK && (!trace || trace->type != TENREC_VALUE_TEXT))
        st = tenrec_fail(&err, TENREC_EPROTOCOL, "'%s' answers without a trace", name);
    if (st == TENREC_OK && (st = dump_write(all, name, output, path, &err)) != TENREC_OK && output)
        tenrec_error_prefix(&err, "--output");
    if (st == TENREC_OK && as_json)
        inspect_print_map(all, "trace", path);
    else if (st == TENREC_OK)
        dump_print(all, name, path);
    tenrec_value_drop(all);
    outside_close(o);
    return st ? tool_fail(self, "%s", err.text) : TOOL_OK;
}

static int dump_main(const struct tool *self, int argc, char **argv)
{
    struct outside o = { .limit_ms = OUTSIDE_LIMIT_MS };
    const char *output = NULL;
    bool as_json = false;
    const struct tool_option option[] = { OUTSIDE_OPTIONS(o),
                                          { "output", 'o', TOOL_TEXT, &output, 0, 0 },
                                          { "json", 'j', TOOL_FLAG, &as_json, 0, 0 } };
    int c = tool_options(self, argc, argv, false, option, sizeof option / sizeof option[0]);

    if (c != TOOL_GO_ON)
        return c;
    if (argc - optind != 1)
        return tool_misuse(self, "takes one worker, got %d", argc - optind);
    return dump_dump(self, &o, argv[optind], output, as_json);
}

const struct tool tool_dump = {
    .name = "dump",
    .usage = "WORKER " OUTSIDE_USAGE "\n                  [--output F] [--json]",
    .summary = "show what a worker of a running group does now",
    .help =
        "Calls WORKER without joining its group, and shows the handlers that it runs, for how "
        "long\n"
        "and where their threads stand, and its own calls that wait. Its latest events are "
        "written\n"
        "as a Chrome trace. The threads of handlers are interrupted by a signal for their stacks,\n"
        "unless the worker's observe.stacks is false. A worker answers also while its pool is "
        "full;\n"
        "not while an inline handler blocks.\n"
        "\n" OUTSIDE_HELP "\n"
        "  -o, --output F   file of the trace, which is overwritten (a new one:\n"
        "                   tenrec-WORKER-PID.json, or with -2, -3 ... before the dot)\n"
        "  -j, --json       JSON, one object a line",
    .main = dump_main,
};
