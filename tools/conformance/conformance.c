/* SPDX-License-Identifier: Apache-2.0 */
/* conformance.c - `tenrec conformance`: does a plugin keep the rules of its header? */
#include "conformance/case.h"
#include "conformance/report.h"
#include "core/base/text.h"
#include "tool.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIMIT_MS 10000 /* of a demand; a case has several */
#define LIMITS_OF_A_CASE 3
#define SLOW_MAX 100
#define WORKERS_MAX 2

struct conformance {
    const struct tool *self;
    struct conformance_setup setup;
    const char *only;  /* NULL: all cases */
    uint64_t limit_ms; /* of a demand */
    struct report report;
};

static bool is_chosen(const struct conformance *r, const struct conformance_case *c)
{
    if (c->of != setup_kind(&r->setup) || (c->of_two && r->setup.workers < 2))
        return false;
    return !r->only || strcmp(r->only, c->name) == 0;
}

static size_t count_chosen(const struct conformance *r)
{
    size_t n = 0;

    for (struct conformance_case *c = case_first(); c; c = c->next)
        n += is_chosen(r, c);
    return n;
}

static int run_cases(struct conformance *r)
{
    const size_t n = count_chosen(r);
    /* Shown at once: a case that hangs is named. */
    struct progress progress = { .fd = isatty(STDERR_FILENO) == 1 && r->report.format != FOR_JSON
                                           ? STDERR_FILENO
                                           : -1 };
    struct result result;
    bool failed = false;
    char text[200];

    for (struct conformance_case *c = case_first(); c; c = c->next) {
        if (!is_chosen(r, c))
            continue;
        snprintf(text, sizeof text, "tenrec conformance: case %zu of %zu, %s",
                 report_count(&r->report) + 1, n, c->name);
        progress_show(&progress, text); /* without a thread: each case is a fork */
        child_run(c, &r->setup, r->limit_ms * LIMITS_OF_A_CASE, &result);
        progress_show(&progress, NULL);
        if (result.outcome == OUTCOME_UNUSABLE && report_count(&r->report) == 0) {
            report_drop(&r->report);
            return tool_fail(r->self, "%s", result.text);
        }
        if (result.outcome == OUTCOME_UNUSABLE) /* as when its server has ended */
            result.outcome = OUTCOME_FAILED;
        failed |= result.outcome == OUTCOME_FAILED;
        report_case(&r->report, c, &result, n);
        if (failed && report_count(&r->report) == 1 && !r->only) {
            if (r->report.format != FOR_JSON)
                printf("# it does not start: the other cases were not run\n");
            break;
        }
    }
    report_end(&r->report);
    return failed ? TOOL_FAILED : TOOL_OK;
}

static const char *const kind_names[] = { "agents", "stores", "observers" };

static int list_cases(void)
{
    for (int kind = OF_AGENTS; kind <= OF_OBSERVERS; kind++) {
        printf("%s:\n", kind_names[kind]);
        for (struct conformance_case *c = case_first(); c; c = c->next)
            if ((int)c->of == kind)
                printf("  %-58s%s%s\n", c->name, c->rules,
                       !c->of_two           ? ""
                       : c->of == OF_STORES ? "  (two processes)"
                                            : "  (two workers)");
    }
    return TOOL_OK;
}

/* What makes the cases of a kind run. */
static int wrong_kind(const struct conformance *r, const struct conformance_case *c)
{
    static const char *const how[] = { "", ": give the URL of one", ": give --address" };

    return tool_misuse(r->self, "case '%s' is of %s%s", r->only, kind_names[c->of], how[c->of]);
}

static int unknown_case(const struct conformance *r)
{
    const enum conformance_kind kind = setup_kind(&r->setup);
    struct suggestion near;

    suggest_init(&near, r->only);
    for (struct conformance_case *c = case_first(); c; c = c->next) {
        if (strcmp(c->name, r->only) == 0 && c->of != kind)
            return wrong_kind(r, c);
        if (strcmp(c->name, r->only) == 0)
            return tool_misuse(r->self, "case '%s' needs two %s", r->only,
                               kind == OF_STORES ? "processes" : "workers");
        if (c->of == kind)
            suggest_try(&near, c->name);
    }
    return tool_misuse(r->self, "no case '%s'%s; --list shows all", r->only, suggest_guess(&near));
}

static int explain_named(const struct tool *self, const char *name)
{
    struct suggestion near;

    suggest_init(&near, name);
    for (struct conformance_case *c = case_first(); c; c = c->next) {
        if (strcmp(c->name, name) == 0) {
            explain_case(c);
            return TOOL_OK;
        }
        suggest_try(&near, c->name);
    }
    return tool_misuse(self, "no case '%s'%s; --list shows all", name, suggest_guess(&near));
}

static int conformance_main(const struct tool *self, int argc, char **argv)
{
    struct conformance r = { .self = self, .limit_ms = LIMIT_MS, .setup.workers = 2 };
    bool list = false, json = false, tap = false;
    const char *explained = NULL, *around = NULL, *slow = secure_getenv("TENREC_TEST_SLOW");
    const struct tool_option options[] = {
        { "case", '\0', TOOL_TEXT, &r.only, 0, 0 },
        { "limit", '\0', TOOL_DURATION, &r.limit_ms, 1, 0 },
        { "workers", 'n', TOOL_NUMBER, &r.setup.workers, 1, WORKERS_MAX },
        { "around", '\0', TOOL_TEXT, &around, 0, 0 },
        { "address", '\0', TOOL_TEXT, &r.setup.address, 0, 0 },
        { "security", '\0', TOOL_TEXT, &r.setup.mode, 0, 0 },
        { "json", 'j', TOOL_FLAG, &json, 0, 0 },
        { "tap", '\0', TOOL_FLAG, &tap, 0, 0 },
        { "list", '\0', TOOL_FLAG, &list, 0, 0 },
        { "explain", '\0', TOOL_TEXT, &explained, 0, 0 },
    };
    int status = tool_options(self, argc, argv, false, options, sizeof options / sizeof *options);
    int64_t times = 1;

    if (status != TOOL_GO_ON)
        return status;
    if (list)
        return list_cases();
    if (explained)
        return explain_named(self, explained);
    status = setup_make(self, argv + optind, argc - optind, around, &r.setup);
    if (status != TOOL_GO_ON)
        return status;
    if (!slow || !tool_number(slow, 1, SLOW_MAX, &times))
        times = 1;
    expect_within((unsigned)r.limit_ms, (unsigned)times);
    r.limit_ms *= (uint64_t)times;
    if (count_chosen(&r) == 0) {
        status = unknown_case(&r);
    } else {
        report_begin(&r.report, json ? FOR_JSON : tap ? FOR_TAP : FOR_PEOPLE);
        status = run_cases(&r);
    }
    setup_finish(&r.setup);
    return status;
}

const struct tool tool_conformance = {
    .name = "conformance",
    .usage = "[--workers N] [--case NAME] [--security MODE] [--json|--tap] CONFIG|PLUGIN.so "
             "[--around PLUGIN]\n"
             "       tenrec conformance [--workers N] [--case NAME] [--json|--tap] URL "
             "[CONFIG|PLUGIN.so]\n"
             "       tenrec conformance --address ADDRESS [--case NAME] [--json|--tap] PLUGIN.so\n"
             "       tenrec conformance --list | --explain NAME",
    .summary = "check that a plugin keeps the rules of agents, stores or observers",
    .help =
        "Runs the cases of the contract of tenrec/agent.h, each in a process of its own, between\n"
        "two workers of this process whose chain is that of CONFIG, or PLUGIN.so alone.\n"
        "With a URL, the cases of the contract of tenrec/store_plugin.h on the store that CONFIG,\n"
        "or else TENREC_CONFIG, opens for it. PLUGIN.so that is a store opens URL, by default\n"
        "NAME://conformance. Nothing else may use the store during the test; the cases remove "
        "their\n"
        "keys, but for a case that fails.\n"
        "With --address, the cases of the contract of tenrec/observer_plugin.h on PLUGIN.so, "
        "which\n"
        "opens that address.\n"
        "\n"
        "  -n, --workers N    2; 1 for a backend that reaches its own worker only, or a store of\n"
        "                     one process: the cases of two are left out\n"
        "      --around PLUGIN    PLUGIN.so is a wrapper: around this plugin\n"
        "      --address ADDRESS  PLUGIN.so is an observer: what it opens\n"
        "      --security MODE    secret|tls, with a new secret; default: as CONFIG and the\n"
        "                     environment say\n"
        "      --case NAME        only this case\n"
        "      --limit TIME       how long what a case demands may take to come true; default: "
        "10s,\n"
        "                     times TENREC_TEST_SLOW\n"
        "      --list             the names of the cases, and the rules that they check\n"
        "      --explain NAME     the rules that a case checks, and what it does\n"
        "  -j, --json             JSON, one object a line\n"
        "      --tap              TAP, the Test Anything Protocol\n"
        "\n"
        "An optional operation that the plugin lacks is 'not offered'. The rules are those of\n"
        "docs/plugin-rules.md. The exit status is 1 if a case failed.",
    .main = conformance_main,
};
