/* SPDX-License-Identifier: Apache-2.0 */
/* rules_test.c - the rule that decides about a function, and the callers that it admits. */
#include "core/base/clock.h"
#include "core/config/settings.h"
#include "security/proof/rules.h"
#include "security/proof/security.h"

#include "../testing.h"

#include <stdio.h>

static struct rules *rules;

/* `allow` as it is in a file "t.yaml", from line 3 on. */
static void open_rules(const char *allow, bool closed)
{
    struct tenrec_config *config;
    struct config_security *s;
    char text[512];
    tenrec_error err;

    snprintf(text, sizeof text, "security:\n  allow:\n%s", allow);
    assert_status(tenrec_config_parse(text, "t.yaml", &config, &err), &err);
    assert_status(config_security_make(config, &s, &err), &err);
    assert_status(rules_make(&s->allow, closed, &rules, &err), &err);
    config_security_drop(s); /* the rules stand on their own */
    tenrec_config_drop(config);
}

static bool admits(const char *function, bool member, const char *name)
{
    return rule_admits(rules_find(rules, function, strlen(function)),
                       &(struct rule_caller){ member, name });
}

TEST(everyone_may_call_everything_when_there_are_no_rules_and_the_mode_is_none)
{
    tenrec_error err;

    assert_status(rules_make(NULL, false, &rules, &err), &err);
    assert_null(rules);
    rules_drop(rules);
}

TEST(strangers_may_call_nothing_when_the_mode_is_not_none)
{
    tenrec_error err;

    assert_status(rules_make(NULL, true, &rules, &err), &err);
    assert_true(rules_closed(rules));
    assert_true(admits("f", true, "worker0"));
    assert_true(admits("f", true, "")); /* a tool */
    assert_false(admits("f", false, ""));
    rules_drop(rules);
}

TEST(default_decides_when_no_rule_fits)
{
    open_rules("    - {function: g, from: w}\n", false);
    assert_false(rules_closed(rules));
    assert_true(admits("f", false, ""));
    rules_drop(rules);
    open_rules("    - {function: g, from: w}\n", true);
    assert_true(admits("f", true, "v"));
    assert_false(admits("f", false, ""));
    rules_drop(rules);
}

TEST(first_rule_that_fits_decides)
{
    open_rules("    - {function: admin.list, from: anyone}\n"
               "    - {function: \"admin.*\", from: [worker0, \"boss*\"]}\n"
               "    - {function: \"*\", from: any_member}\n",
               true);
    assert_true(admits("admin.list", false, ""));
    assert_true(admits("admin.stop", true, "worker0"));
    assert_true(admits("admin.stop", true, "boss7"));
    assert_false(admits("admin.stop", true, "worker1"));
    assert_false(admits("admin.stop", true, "worker00"));
    assert_false(admits("admin.stop", true, "")); /* a tool has no name */
    assert_true(admits("other", true, "worker1"));
    assert_true(admits("other", true, ""));
    assert_false(admits("other", false, ""));
    rules_drop(rules);
}

TEST(caller_without_a_name_fits_no_pattern)
{
    open_rules("    - {function: f, from: \"*\"}\n", false);
    assert_true(admits("f", true, "w"));
    assert_false(admits("f", true, ""));
    assert_false(admits("f", false, ""));
    rules_drop(rules);
}

TEST(star_stands_for_any_bytes_and_all_else_for_itself)
{
    static const struct {
        const char *pattern, *function;
        bool fits;
    } table[] = {
        { "f", "f", true },
        { "f", "ff", false },
        { "f", "F", false },
        { "ff", "f", false },
        { "a.*", "a.", true },
        { "a.*", "a.b/c", true },
        { "a.*", "a", false },
        { "*.stop", "x.y.stop", true },
        { "*.stop", "x.stop.y", false },
        { "a*b*c", "a1bb2c", true },
        { "a*b*c", "acb", false },
        { "**", "", true },
        { "a**", "a", true },
        { "?", "x", false },
        { "[ab]", "a", false },
        { "\\\\*", "\\x", true },
        { "*aaaaaaaab", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false },
    };

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char allow[96];

        snprintf(allow, sizeof allow, "    - {function: \"%s\", from: nobody}\n", table[i].pattern);
        open_rules(allow, false);
        if (admits(table[i].function, true, "w") == table[i].fits)
            fail_msg("'%s' and '%s'", table[i].pattern, table[i].function);
        rules_drop(rules);
    }
}

/* A name from the wire has no end of its own. */
TEST(name_ends_at_its_length)
{
    open_rules("    - {function: stop, from: nobody}\n", false);
    assert_false(
        rule_admits(rules_find(rules, "stopwatch", 4), &(struct rule_caller){ true, "w" }));
    assert_true(rule_admits(rules_find(rules, "stop\0x", 6), &(struct rule_caller){ true, "w" }));
    rules_drop(rules);
}

static void assert_refusal(const char *function, bool member, const char *name, const char *text)
{
    tenrec_error err;

    assert_int_equal(rule_refuse(rules_find(rules, function, strlen(function)),
                                 &(struct rule_caller){ member, name }, function, strlen(function),
                                 &err),
                     TENREC_EPERM);
    assert_string_equal(err.text, text);
}

TEST(refusal_names_the_place_of_the_rule)
{
    open_rules("    - {function: f, from: w}\n    - {function: \"admin.*\", from: [worker0]}\n",
               true);
    assert_refusal("admin.stop", true, "worker1",
                   "the rule at t.yaml:4:7 does not allow worker1 to call 'admin.stop'");
    assert_refusal("f", true, "", "the rule at t.yaml:3:7 does not allow a tool to call 'f'");
    assert_refusal("g", false, "", "no rule allows a caller that has proved nothing to call 'g'");
    rules_drop(rules);
}

TEST(security_has_the_rules_of_its_section)
{
    struct tenrec_config *config;
    struct security *s;
    tenrec_error err;

    assert_status(tenrec_config_parse("security: {mode: none, allow: [{function: f, from: w}]}",
                                      "t.yaml", &config, &err),
                  &err);
    assert_status(security_open(config, CLOCK_NEVER, &s, &err), &err);
    rules = s->rules;
    assert_false(admits("f", true, "v"));
    assert_true(admits("g", false, ""));
    security_drop(s);
    tenrec_config_drop(config);
}
