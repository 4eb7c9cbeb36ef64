/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/report.h"

#include "outside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const outcomes[] = { "ok", "failed", "not offered" };

void report_begin(struct report *r, enum format format)
{
    *r = (struct report){ .format = format };
    if (format == FOR_JSON)
        r->cases = json_array();
}

size_t report_count(const struct report *r)
{
    return r->n[OUTCOME_OK] + r->n[OUTCOME_FAILED] + r->n[OUTCOME_NOT_OFFERED];
}

/* ---- rules ---- */

static void rule_note(struct report *r, const char *name, size_t len, enum outcome outcome)
{
    struct rule *rule = r->rule;

    while (rule < r->rule + r->n_rules &&
           (strncmp(rule->name, name, len) != 0 || rule->name[len] != '\0'))
        rule++;
    if (rule == r->rule + r->n_rules) {
        if (r->n_rules == RULES_MAX || len >= EXPECT_RULE_MAX)
            return;
        r->n_rules++;
        *rule = (struct rule){ .outcome = outcome };
        memcpy(rule->name, name, len);
    } else if (outcome == OUTCOME_FAILED || rule->outcome == OUTCOME_NOT_OFFERED) {
        rule->outcome = outcome;
    }
}

static void rules_note(struct report *r, const char *rules, enum outcome outcome)
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

static void print_rules(const struct report *r, enum outcome outcome, const char *title)
{
    size_t n = 0;

    for (size_t i = 0; i < r->n_rules; i++)
        if (r->rule[i].outcome == outcome)
            printf("%s %s", n++ ? "" : title, r->rule[i].name);
    if (n)
        printf("\n");
}

/* ---- cases ---- */

static void print_indented(const char *text, const char *indent)
{
    while (*text) {
        const size_t n = strcspn(text, "\n");

        printf("%s%.*s\n", indent, (int)n, text);
        text += n + (text[n] == '\n');
    }
}

void report_case(struct report *r, const struct conformance_case *c, const struct result *result,
                 size_t planned)
{
    /* A demand of one rule that does not hold says nothing of the others of its case. */
    const char *rules = result->rule[0] ? result->rule : c->rules;
    const bool first = report_count(r) == 0;

    r->n[result->outcome]++;
    rules_note(r, rules, result->outcome);
    switch (r->format) {
    case FOR_PEOPLE:
        printf("%-12s%-58s%s\n", outcomes[result->outcome], c->name, rules);
        if (result->outcome != OUTCOME_OK)
            print_indented(result->text, "            ");
        break;
    case FOR_TAP: /* what is not offered is not skipped: there is nothing to be tested */
        if (first)
            printf("1..%zu\n", planned);
        printf("%s %zu - conformance_%s\n", result->outcome == OUTCOME_FAILED ? "not ok" : "ok",
               report_count(r), c->name);
        if (result->outcome == OUTCOME_FAILED)
            printf("# %s\n", rules);
        if (result->outcome != OUTCOME_OK)
            print_indented(result->text, "# ");
        break;
    case FOR_JSON:
        json_array_append_new(r->cases,
                              json_pack("{s:s, s:s, s:s, s:s}", "case", c->name, "rules", rules,
                                        "result", outcomes[result->outcome], "text", result->text));
        break;
    }
    fflush(stdout);
}

void report_end(struct report *r)
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
        json_t *rules = json_object(), *all;

        for (size_t i = 0; i < r->n_rules; i++)
            json_object_set_new(rules, r->rule[i].name, json_string(outcomes[r->rule[i].outcome]));
        all = json_pack("{s:O, s:o}", "cases", r->cases, "rules", rules);
        inspect_print_json(all);
        json_decref(all);
    }
    report_drop(r);
}

void report_drop(struct report *r)
{
    json_decref(r->cases);
    r->cases = NULL;
}
