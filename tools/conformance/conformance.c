/* SPDX-License-Identifier: Apache-2.0 */
/* conformance.c - `tenrec conformance`: does a backend keep the rules of tenrec/agent.h? */
#include "base/suggest.h"
#include "conformance/child.h"
#include "tool.h"

#include <getopt.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT_MS 10000 /* of a demand; a case has several */
#define LIMITS_OF_A_CASE 3
#define SLOW_MAX 100
#define RULE_MAX 8 /* "AG-13" and a NUL */
#define RULES_MAX 256

enum format { FOR_PEOPLE, FOR_TAP, FOR_JSON };

/* What became of a rule: the worst of its cases. */
struct rule {
    char name[RULE_MAX];
    enum outcome outcome;
};

struct conformance {
    const struct tool *self;
    struct conformance_setup setup;
    const char *only; /* NULL: all cases */
    enum format format;
    uint64_t limit_ms; /* of a demand */
    struct rule rule[RULES_MAX];
    size_t n_rules;
    size_t n[3]; /* by outcome */
    json_t *cases;
};

static const char *const outcomes[] = { "ok", "failed", "not offered" };

static bool is_chosen(const struct conformance *r, const struct conformance_case *c)
{
    if (c->of_two && r->setup.workers < 2)
        return false;
    return !r->only || strcmp(r->only, c->name) == 0;
}

/* ---- rules ---- */

static void rule_note(struct conformance *r, const char *name, size_t len, enum outcome outcome)
{
    struct rule *rule = r->rule;

    while (rule < r->rule + r->n_rules &&
           (strncmp(rule->name, name, len) != 0 || rule->name[len] != '\0'))
        rule++;
    if (rule == r->rule + r->n_rules) {
        if (r->n_rules == RULES_MAX)
            return;
        r->n_rules++;
        *rule = (struct rule){ .outcome = outcome };
        memcpy(rule->name, name, len < RULE_MAX - 1 ? len : RULE_MAX - 1);
    } else if (outcome == OUTCOME_FAILED || rule->outcome == OUTCOME_NOT_OFFERED) {
        rule->outcome = outcome;
    }
}

static void rules_note(struct conformance *r, const char *rules, enum outcome outcome)
{
    while (*rules) {
        const size_t n = strcspn(rules, " ");

        rule_note(r, rules, n, outcome);
        rules += n + strspn(rules + n, " ");
    }
}

static int by_number(const void *x, const void *y)
{
    const char *first = ((const struct rule *)x)->name, *second = ((const struct rule *)y)->name;
    const int kind = strncmp(first, second, 3);

    return kind ? kind : atoi(first + 3) - atoi(second + 3);
}

static void print_rules(const struct conformance *r, enum outcome outcome, const char *title)
{
    size_t n = 0;

    for (size_t i = 0; i < r->n_rules; i++)
        if (r->rule[i].outcome == outcome)
            printf("%s %s", n++ ? "" : title, r->rule[i].name);
    if (n)
        printf("\n");
}

/* ---- reports ---- */

static void print_indented(const char *text, const char *indent)
{
    while (*text) {
        const size_t n = strcspn(text, "\n");

        printf("%s%.*s\n", indent, (int)n, text);
        text += n + (text[n] == '\n');
    }
}

static void conformance_report(struct conformance *r, const struct conformance_case *c,
                               const struct result *result)
{
    const size_t n = r->n[0] + r->n[1] + r->n[2];

    switch (r->format) {
    case FOR_PEOPLE:
        printf("%-12s%-58s%s\n", outcomes[result->outcome], c->name, c->rules);
        if (result->outcome != OUTCOME_OK)
            print_indented(result->text, "            ");
        break;
    case FOR_TAP: /* what is not offered is not skipped: there is nothing to be tested */
        printf("%s %zu - conformance_%s\n", result->outcome == OUTCOME_FAILED ? "not ok" : "ok", n,
               c->name);
        if (result->outcome != OUTCOME_OK)
            print_indented(result->text, "# ");
        break;
    case FOR_JSON:
        json_array_append_new(r->cases,
                              json_pack("{s:s, s:s, s:s, s:s}", "case", c->name, "rules", c->rules,
                                        "result", outcomes[result->outcome], "text", result->text));
        break;
    }
    fflush(stdout);
}

static void conformance_report_end(struct conformance *r)
{
    qsort(r->rule, r->n_rules, sizeof *r->rule, by_number);
    if (r->format == FOR_PEOPLE) {
        printf("\n");
        print_rules(r, OUTCOME_OK, "rules checked:    ");
        print_rules(r, OUTCOME_FAILED, "rules broken:     ");
        print_rules(r, OUTCOME_NOT_OFFERED, "rules not offered:");
        printf("%zu passed, %zu failed, %zu not offered\n", r->n[OUTCOME_OK], r->n[OUTCOME_FAILED],
               r->n[OUTCOME_NOT_OFFERED]);
    } else if (r->format == FOR_JSON) {
        json_t *rules = json_object(),
               *all = json_pack("{s:o, s:o}", "cases", r->cases, "rules", rules);

        for (size_t i = 0; i < r->n_rules; i++)
            json_object_set_new(rules, r->rule[i].name, json_string(outcomes[r->rule[i].outcome]));
        json_dumpf(all, stdout, JSON_INDENT(2));
        printf("\n");
        json_decref(all);
    }
}

/* ---- the run ---- */

static int run_cases(struct conformance *r)
{
    struct result result;
    size_t n = 0;

    for (struct conformance_case *c = case_first(); c; c = c->next)
        n += is_chosen(r, c);
    for (struct conformance_case *c = case_first(); c; c = c->next) {
        if (!is_chosen(r, c))
            continue;
        child_run(c, &r->setup, r->limit_ms * LIMITS_OF_A_CASE, &result);
        if (result.outcome == OUTCOME_UNUSABLE) {
            json_decref(r->cases);
            return tool_fail(r->self, "%s", result.text);
        }
        if (r->format == FOR_TAP && !r->n_rules)
            printf("1..%zu\n", n);
        r->n[result.outcome]++;
        rules_note(r, c->rules, result.outcome);
        conformance_report(r, c, &result);
        if (c == case_first() && result.outcome == OUTCOME_FAILED && !r->only) {
            if (r->format != FOR_JSON)
                printf("# it does not start: the other cases were not run\n");
            break;
        }
    }
    conformance_report_end(r);
    return r->n[OUTCOME_FAILED] ? TOOL_FAILED : TOOL_OK;
}

static int list_cases(void)
{
    for (struct conformance_case *c = case_first(); c; c = c->next)
        printf("%-58s%s%s\n", c->name, c->rules, c->of_two ? "  (two workers)" : "");
    return TOOL_OK;
}

static int unknown_case(const struct conformance *r)
{
    struct suggestion near;

    suggest_init(&near, r->only);
    for (struct conformance_case *c = case_first(); c; c = c->next) {
        if (strcmp(c->name, r->only) == 0)
            return tool_misuse(r->self, "case '%s' needs two workers", r->only);
        suggest_try(&near, c->name);
    }
    return tool_misuse(r->self, "no case '%s'%s; --list shows all", r->only, suggest_hint(&near));
}

/* A configuration for one plugin: alone, or around another. */
static int make_config(const struct tool *self, const char *path, const char *around, char **ret)
{
    char *full = realpath(path, NULL);
    int n;

    if (!full)
        return tool_fail(self, "cannot read %s", path);
    n = asprintf(ret, "backend: it\nbackends:\n  it: { plugin: \"%s\"%s }\n%s%s%s", full,
                 around ? ", wraps: inside" : "", around ? "  inside: { plugin: " : "",
                 around ? around : "", around ? " }\n" : "");
    free(full);
    return n < 0 ? tool_fail(self, "out of memory") : TOOL_GO_ON;
}

static bool has_end(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);

    return n > m && strcmp(text + n - m, end) == 0;
}

static int conformance_main(const struct tool *self, int argc, char **argv)
{
    struct conformance r = { .self = self, .limit_ms = LIMIT_MS, .setup.workers = 2 };
    bool list = false, json = false, tap = false, any = false;
    const char *around = NULL, *slow = secure_getenv("TENREC_TEST_SLOW");
    const struct tool_option options[] = {
        { "case", '\0', TOOL_TEXT, &r.only, 0, 0 },
        { "limit", '\0', TOOL_DURATION, &r.limit_ms, 1, 0 },
        { "workers", 'n', TOOL_NUMBER, &r.setup.workers, 1, WORLD_MAX },
        { "around", '\0', TOOL_TEXT, &around, 0, 0 },
        { "security", '\0', TOOL_TEXT, &r.setup.mode, 0, 0 },
        { "json", '\0', TOOL_FLAG, &json, 0, 0 },
        { "tap", '\0', TOOL_FLAG, &tap, 0, 0 },
        { "list", '\0', TOOL_FLAG, &list, 0, 0 },
    };
    char *text = NULL;
    int status = tool_options(self, argc, argv, false, options, sizeof options / sizeof *options);
    int64_t times = 1;

    if (status != TOOL_GO_ON)
        return status;
    if (list)
        return list_cases();
    if (argc - optind != 1)
        return tool_misuse(self, "expected one configuration or plugin");
    if (slow && tool_number(slow, 1, SLOW_MAX, &times))
        r.limit_ms *= (uint64_t)times;
    expect_within((unsigned)r.limit_ms);
    for (struct conformance_case *c = case_first(); c; c = c->next)
        any |= is_chosen(&r, c);
    if (!any)
        return unknown_case(&r);
    r.setup.path = argv[optind];
    if (has_end(r.setup.path, ".so")) {
        status = make_config(self, r.setup.path, around, &text);
        if (status != TOOL_GO_ON)
            return status;
        r.setup.text = text;
    } else if (around) {
        return tool_misuse(self,
                           "--around is for a plugin; the configuration says what wraps what");
    }
    r.format = json ? FOR_JSON : tap ? FOR_TAP : FOR_PEOPLE;
    r.cases = json ? json_array() : NULL;
    status = run_cases(&r);
    free(text);
    return status;
}

const struct tool tool_conformance = {
    .name = "conformance",
    .usage = "[--workers N] [--case NAME] [--security MODE] [--json|--tap] CONFIG|PLUGIN.so "
             "[--around PLUGIN]\n"
             "       tenrec conformance --list",
    .summary = "check that a backend keeps the rules of agents",
    .help =
        "Runs the cases of the contract of tenrec/agent.h, each in a process of its own, between\n"
        "two workers of this process whose chain is that of CONFIG, or PLUGIN.so alone.\n"
        "\n"
        "  -n, --workers N    2; 1 for a backend that reaches its own worker only: the cases\n"
        "                     of two workers are left out\n"
        "  --around PLUGIN    PLUGIN.so is a wrapper: around this plugin\n"
        "  --security MODE    secret or tls, with a new secret; default: as CONFIG and the\n"
        "                     environment say\n"
        "  --case NAME        only this case\n"
        "  --limit TIME       how long what a case demands may take to come true; default: 10s,\n"
        "                     times TENREC_TEST_SLOW\n"
        "  --list             the names of the cases, and the rules that they check\n"
        "  --json, --tap      for programs\n"
        "\n"
        "An optional operation that the backend lacks is 'not offered'. The rules are those of\n"
        "docs/plugin-rules.md. The exit status is 1 if a case failed.",
    .main = conformance_main,
};
