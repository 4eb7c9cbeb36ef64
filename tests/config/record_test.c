/* SPDX-License-Identifier: Apache-2.0 */
/* record_test.c - lists of maps, each read by a table of its own. */
#include "sample.h"

/* The option `rules`, written as `text` in a file. */
static tenrec_status make_rules(const char *rules, struct sample **ret, tenrec_error *err)
{
    struct tenrec_config *config = NULL;
    struct config_layer *layer = NULL;
    char text[1024];
    void *opts = NULL;
    size_t n;
    tenrec_status st;

    snprintf(text, sizeof text,
             "backend: flaky\nbackends:\n  flaky:\n    plugin: p\n    options:\n      rules: %s\n",
             rules);
    st = tenrec_config_parse(text, "t.yaml", &config, err);
    if (st == TENREC_OK)
        st = config_layers(config, &layer, &n, err);
    if (st == TENREC_OK)
        st = options_make(&sample, &layer[0], &opts, err);
    free(layer);
    tenrec_config_drop(config);
    *ret = opts;
    return st;
}

static const struct sample_rule *rule(const struct sample *s, size_t i)
{
    return (const struct sample_rule *)s->rules.v + i;
}

TEST(record_reads_each_map_with_its_defaults)
{
    struct sample *s;
    tenrec_error err = { 0 };

    if (make_rules("\n      - {do: drop, on: [RET, CALL], weights: {a: 7}}\n      - chance: 0.25\n",
                   &s, &err) != TENREC_OK)
        fail_msg("%s", err.text);
    assert_int_equal(s->rules.n, 2);
    assert_string_equal(rule(s, 0)->name, "drop");
    assert_true(rule(s, 0)->chance == 1.0);
    assert_int_equal(rule(s, 0)->on.n, 2);
    assert_string_equal(rule(s, 0)->on.v[1].s, "CALL");
    assert_int_equal(rule(s, 0)->weights.v[0].value.i, 7);
    assert_string_equal(s->rules.where[0], "t.yaml:7:9");
    assert_null(rule(s, 1)->name);
    assert_true(rule(s, 1)->chance == 0.25);
    assert_int_equal(rule(s, 1)->on.n, 0);
    assert_string_equal(s->rules.where[1], "t.yaml:8:9");
    options_drop(s);
}

TEST(record_reads_an_empty_list)
{
    struct sample *s;
    tenrec_error err = { 0 };

    assert_int_equal(make_rules("[]", &s, &err), TENREC_OK);
    assert_int_equal(s->rules.n, 0);
    options_drop(s);
}

TEST(record_reads_values_of_a_variable)
{
    struct sample *s;
    tenrec_error err = { 0 };

    setenv("TENREC_BACKENDS__FLAKY__RULES", "[{do: delay}, {do: drop, chance: 0}]", 1);
    if (make_rules("[{}]", &s, &err) != TENREC_OK)
        fail_msg("%s", err.text);
    assert_int_equal(s->rules.n, 2);
    assert_true(rule(s, 1)->chance == 0.0);
    assert_string_equal(s->rules.where[1], "environment TENREC_BACKENDS__FLAKY__RULES");
    options_drop(s);
    setenv("TENREC_BACKENDS__FLAKY__RULES", "do=drop", 1);
    assert_int_equal(make_rules("[]", &s, &err), TENREC_ECONFIG);
    assert_string_equal(err.text,
                        "environment TENREC_BACKENDS__FLAKY__RULES: backend 'flaky': option "
                        "'rules': expected a list of maps such as [{key: value}], found 'do=drop'");
    unsetenv("TENREC_BACKENDS__FLAKY__RULES");
}

TEST(record_refuses_with_place_and_reason)
{
#define R "backend 'flaky': option 'rules'"
    static const char *const cases[][2] = {
        { "drop", "t.yaml:6:14: " R ": expected a list of maps such as [{key: value}], found "
                  "'drop'" },
        { "{do: drop}",
          "t.yaml:6:14: " R ": expected a list of maps such as [{key: value}], found a map" },
        { "[{}, drop]", "t.yaml:6:19: " R ", item 2: expected a map, found 'drop'" },
        { "[{dp: drop}]", "t.yaml:6:16: " R ", item 1: has no key 'dp' (did you mean 'do'?)" },
        { "[{}, {do: dorp}]", "t.yaml:6:24: " R ", item 2: 'do': expected one of drop, delay, "
                              "found 'dorp' (did you mean 'drop'?)" },
        { "[{chance: 2}]", "t.yaml:6:24: " R ", item 1: 'chance': expected 0 to 1, found '2'" },
        { "[{on: CALL}]",
          "t.yaml:6:20: " R ", item 1: 'on': expected a list such as [a, b], found 'CALL'" },
        { "[{weights: {a: b}}]", "t.yaml:6:29: " R ", item 1: 'weights', key 'a': expected an "
                                 "integer, found 'b'" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct sample *s;
        tenrec_error err = { 0 };
        tenrec_status st = make_rules(cases[i][0], &s, &err);
        assert_string_equal(err.text, cases[i][1]);
        assert_int_equal(st, TENREC_ECONFIG);
        assert_null(s);
    }
}

int main(void)
{
    return testing_run(clean_environment, clean_environment);
}
