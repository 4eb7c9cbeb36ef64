/* SPDX-License-Identifier: Apache-2.0 */
#include "security/proof/rules.h"

#include "core/base/memory.h"
#include "core/config/settings.h"

#include <stdlib.h>
#include <string.h>

#define RULE_ANY_MEMBER "any_member"
#define RULE_ANYONE "anyone"
#define RULE_SHOWN_MAX 255 /* bytes of a function's name, in an error */

struct rule {
    const char *function; /* a pattern; the default's is "" */
    const char *where;    /* "cluster.yaml:7:7"; the default's is "" */
    bool any_member, anyone;
    const char **name; /* patterns of workers' names */
    size_t n_names;
};

struct rules {
    struct arena arena; /* of all texts and rules */
    struct rule otherwise;
    struct rule *rule;
    size_t n;
};

/* ---- patterns -------------------------------------------------------------- */

/* A '*' stands for any bytes, none included; all else for itself. After a mismatch the last '*'
 * takes one byte more: no earlier one needs to, so that the time is at most the product of both
 * lengths. */
static bool rule_fits(const char *pattern, const char *text, size_t len)
{
    const char *star = NULL;
    size_t i = 0, retry = 0;

    while (i < len) {
        if (*pattern == '*') {
            star = ++pattern;
            retry = i;
        } else if (*pattern != '\0' && *pattern == text[i]) {
            pattern++;
            i++;
        } else if (star) {
            pattern = star;
            i = ++retry;
        } else {
            return false;
        }
    }
    return pattern[strspn(pattern, "*")] == '\0';
}

/* ---- making ---------------------------------------------------------------- */

static bool rule_copy(struct arena *arena, const struct config_rule *config, const char *where,
                      struct rule *ret)
{
    ret->function = arena_text(arena, config->function);
    ret->where = arena_text(arena, where);
    ret->name = arena_new(arena, config->from.n, sizeof *ret->name);
    if (!ret->function || !ret->where || !ret->name)
        return false;
    for (size_t i = 0; i < config->from.n; i++) {
        const char *from = config->from.v[i].s;

        if (strcmp(from, RULE_ANY_MEMBER) == 0)
            ret->any_member = true;
        else if (strcmp(from, RULE_ANYONE) == 0)
            ret->any_member = ret->anyone = true;
        else if (!(ret->name[ret->n_names++] = arena_text(arena, from)))
            return false;
    }
    return true;
}

tenrec_status rules_make(const struct tenrec_option_records *allow, bool closed, struct rules **ret,
                         tenrec_error *err)
{
    const struct config_rule *config = allow ? allow->v : NULL;
    const size_t n = allow ? allow->n : 0;
    struct rules *r;

    *ret = NULL;
    if (n == 0 && !closed)
        return TENREC_OK;
    r = memory_new(1, sizeof *r);
    if (!r)
        return memory_fail(err);
    r->otherwise = (struct rule){ .function = "", .where = "", .any_member = true };
    r->otherwise.anyone = !closed;
    if (n > 0 && !(r->rule = arena_new(&r->arena, n, sizeof *r->rule)))
        goto err_drop;
    for (; r->n < n; r->n++)
        if (!rule_copy(&r->arena, &config[r->n], allow->where[r->n], &r->rule[r->n]))
            goto err_drop;
    *ret = r;
    return TENREC_OK;

err_drop:
    rules_drop(r);
    return memory_fail(err);
}

void rules_drop(struct rules *r)
{
    if (!r)
        return;
    arena_finish(&r->arena);
    free(r);
}

/* ---- verdicts -------------------------------------------------------------- */

bool rules_closed(const struct rules *r)
{
    return !r->otherwise.anyone;
}

const struct rule *rules_find(const struct rules *r, const char *function, size_t len)
{
    for (size_t i = 0; i < r->n; i++)
        if (rule_fits(r->rule[i].function, function, len))
            return &r->rule[i];
    return &r->otherwise;
}

bool rule_admits(const struct rule *rule, const struct rule_caller *caller)
{
    const size_t len = strlen(caller->name);

    if (rule->anyone || (rule->any_member && caller->member))
        return true;
    for (size_t i = 0; i < rule->n_names && len > 0; i++)
        if (rule_fits(rule->name[i], caller->name, len))
            return true;
    return false;
}

tenrec_status rule_refuse(const struct rule *rule, const struct rule_caller *caller,
                          const char *function, size_t len, tenrec_error *err)
{
    const char *who = *caller->name    ? caller->name
                      : caller->member ? "a tool"
                                       : "a caller that has proved nothing";
    const int shown = (int)(len < RULE_SHOWN_MAX ? len : RULE_SHOWN_MAX);

    if (*rule->where)
        return tenrec_fail(err, TENREC_EPERM, "the rule at %s does not allow %s to call '%.*s'",
                           rule->where, who, shown, function);
    return tenrec_fail(err, TENREC_EPERM, "no rule allows %s to call '%.*s'", who, shown, function);
}
