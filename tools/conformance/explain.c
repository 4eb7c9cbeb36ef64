/* SPDX-License-Identifier: Apache-2.0 */
/* explain.c - the page of the rules and the sources of the cases, as they were when this was built.
 */
#include "conformance/report.h"

#include <stdio.h>
#include <string.h>

#define COLUMNS 100

/* Prints `text` up to `len` in lines of at most COLUMNS, each behind `indent`. */
static void explain_wrapped(const char *indent, const char *text, size_t len)
{
    while (len > 0) {
        size_t n = len;

        if (n > COLUMNS - strlen(indent)) {
            n = COLUMNS - strlen(indent);
            while (n > 0 && text[n] != ' ')
                n--;
            n = n ? n : COLUMNS - strlen(indent);
        }
        printf("%s%.*s\n", indent, (int)n, text);
        n += n < len && text[n] == ' ';
        text += n;
        len -= n;
    }
}

/* The row of a rule: "| AG-10 | text | if a plugin breaks it | tested by |". */
static void explain_rule(const char *rule, size_t len)
{
    for (const char *const *line = text_rules; *line; line++) {
        const char *says = *line + 2 + len + 3, *otherwise, *end;

        if (strncmp(*line, "| ", 2) != 0 || strncmp(*line + 2, rule, len) != 0 ||
            strncmp(*line + 2 + len, " | ", 3) != 0)
            continue;
        otherwise = strstr(says, " | ");
        end = otherwise ? strstr(otherwise + 3, " | ") : NULL;
        if (!end)
            continue;
        printf("  %.*s\n", (int)len, rule);
        explain_wrapped("    ", says, (size_t)(otherwise - says));
        printf("    Otherwise:\n");
        explain_wrapped("    ", otherwise + 3, (size_t)(end - otherwise - 3));
    }
}

/* Returns true for the line that begins the case. */
static bool explain_is_head(const char *line, const char *name)
{
    const char *open = strchr(line, '(');
    const size_t len = strlen(name);

    return open && strncmp(open + 1, name, len) == 0 && open[1 + len] == ',' &&
           (strncmp(line, "CASE", 4) == 0 || strncmp(line, "STORE_CASE", 10) == 0 ||
            strncmp(line, "OBSERVER_CASE", 13) == 0);
}

static void explain_source(const char *name)
{
    const char *const *line = text_cases;

    while (*line && !explain_is_head(*line, name))
        line++;
    for (; *line; line++) {
        printf("    %s", *line);
        if (strcmp(*line, "}\n") == 0)
            break;
    }
}

void explain_case(const struct conformance_case *c)
{
    const char *file = strrchr(c->file, '/');

    printf("%s\n\nrules:\n", c->name);
    for (const char *rule = c->rules; *rule;) {
        const size_t len = strcspn(rule, " ");

        explain_rule(rule, len);
        rule += len + strspn(rule + len, " ");
    }
    printf("\nthe case, %s (%s:%d):\n",
           c->of == OF_OBSERVERS ? "on an observer"
           : c->of == OF_STORES
               ? "between two clients of the store, `one` and `two`"
               : "between two workers, `a` and `b`, which are one with --workers 1",
           file ? file + 1 : c->file, c->line);
    explain_source(c->name);
}
