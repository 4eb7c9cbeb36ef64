/* SPDX-License-Identifier: Apache-2.0 */
/* quantity_test.c - durations, sizes, numbers, and the nearest name. */
#include "core/config/value.h"

#include "core/base/text.h"

#include "../testing.h"

#include <inttypes.h>
#include <locale.h>

TEST(quantity_duration_reads_every_unit)
{
    static const struct {
        const char *text;
        uint64_t ms;
    } cases[] = {
        { "250ms", 250 },     { "0ms", 0 },           { "60s", 60000 },
        { "1.5s", 1500 },     { "0.001s", 1 },        { "1.500000s", 1500 },
        { "2m", 120000 },     { "0.5m", 30000 },      { "1h", 3600000 },
        { "1.25h", 4500000 }, { "none", UINT64_MAX }, { "9223372036854775s", 9223372036854775000u },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t ms = 1;
        tenrec_error err = { 0 };
        if (quantity_duration(cases[i].text, false, &ms, &err) != TENREC_OK || ms != cases[i].ms)
            fail_msg("'%s': %" PRIu64 ", %s", cases[i].text, ms, err.text);
    }
}

TEST(quantity_duration_refuses_ambiguous_text)
{
    static const char *const cases[][2] = {
        { "60", "a duration needs a unit (ms, s, m, h), found '60'" },
        { "0", "a duration needs a unit (ms, s, m, h), found '0'" },
        { "-5s", "a duration cannot be negative, found '-5s' ('none' means for ever)" },
        { "", "expected a duration such as 250ms, 1.5s, 2m, 1h or none, found ''" },
        { "soon", "expected a duration such as 250ms, 1.5s, 2m, 1h or none, found 'soon'" },
        { " 5s", "expected a duration such as 250ms, 1.5s, 2m, 1h or none, found ' 5s'" },
        { ".5s", "expected a duration such as 250ms, 1.5s, 2m, 1h or none, found '.5s'" },
        { "5 s", "a duration has the unit ms, s, m or h, found '5 s'" },
        { "5sec", "a duration has the unit ms, s, m or h, found '5sec'" },
        { "5.s", "a duration has the unit ms, s, m or h, found '5.s'" },
        { "1.5ms", "a duration is a whole number of milliseconds below 2^63, found '1.5ms'" },
        { "0.0001s", "a duration is a whole number of milliseconds below 2^63, found '0.0001s'" },
        { "9223372036854775807ms", "a duration is a whole number of milliseconds below 2^63, found "
                                   "'9223372036854775807ms'" },
        { "9223372036854775807h",
          "a duration is a whole number of milliseconds below 2^63, found '9223372036854775807h'" },
        { "99999999999999999999s", "expected a duration such as 250ms, 1.5s, 2m, 1h or none, "
                                   "found '99999999999999999999s'" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t ms;
        tenrec_error err = { 0 };
        assert_int_equal(quantity_duration(cases[i][0], false, &ms, &err), TENREC_EINVAL);
        assert_string_equal(err.text, cases[i][1]);
    }
}

TEST(quantity_duration_takes_plain_seconds_when_told)
{
    uint64_t ms;

    assert_int_equal(quantity_duration("1.5", true, &ms, NULL), TENREC_OK);
    assert_int_equal(ms, 1500);
    assert_int_equal(quantity_duration("2", true, &ms, NULL), TENREC_OK);
    assert_int_equal(ms, 2000);
    assert_int_equal(quantity_duration("250ms", true, &ms, NULL), TENREC_OK);
    assert_int_equal(ms, 250);
    assert_int_equal(quantity_duration("-1.5", true, &ms, NULL), TENREC_EINVAL);
}

TEST(quantity_size_reads_every_unit)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } cases[] = {
        { "0", 0 },         { "512", 512 },      { "512B", 512 },
        { "64KiB", 65536 }, { "1MiB", 1048576 }, { "2GiB", (uint64_t)2 << 30 },
        { "1kB", 1000 },    { "1MB", 1000000 },  { "3GB", 3000000000u },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t bytes = 1;
        tenrec_error err = { 0 };
        if (quantity_size(cases[i].text, &bytes, &err) != TENREC_OK || bytes != cases[i].bytes)
            fail_msg("'%s': %" PRIu64 ", %s", cases[i].text, bytes, err.text);
    }
}

TEST(quantity_size_refuses_ambiguous_text)
{
    static const char *const cases[] = {
        "", "-1", "KiB", "1.5MiB", "64K", "64kb", "64 KiB", "+1", "1e3", "9223372036854775807GiB"
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t bytes;
        tenrec_error err = { 0 };
        assert_int_equal(quantity_size(cases[i], &bytes, &err), TENREC_EINVAL);
        assert_non_null(strstr(err.text, cases[i]));
    }
}

TEST(quantity_int_reads_whole_numbers_only)
{
    static const char *const bad[] = {
        "", " 1", "1 ", "1.0", "1e3", "0x", "0xg", "--1", "0x-1", "ten", "9223372036854775808"
    };
    int64_t v;

    assert_int_equal(quantity_int("42", &v, NULL), TENREC_OK);
    assert_int_equal(v, 42);
    assert_int_equal(quantity_int("-9223372036854775808", &v, NULL), TENREC_OK);
    assert_true(v == INT64_MIN);
    assert_int_equal(quantity_int("0x10f", &v, NULL), TENREC_OK);
    assert_int_equal(v, 0x10f);
    assert_int_equal(quantity_int("010", &v, NULL), TENREC_OK);
    assert_int_equal(v, 10);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(quantity_int(bad[i], &v, NULL), TENREC_EINVAL);
}

TEST(quantity_double_reads_a_point_in_any_locale)
{
    static const char *const bad[] = { "", " 1", "1,5", "nan", "inf", "1e999", "0x1p3", "1.5x" };
    double v;

    setlocale(LC_ALL, "de_DE.UTF-8"); /* decides nothing where it is not installed */
    assert_int_equal(quantity_double("1.5", &v, NULL), TENREC_OK);
    assert_true(v == 1.5);
    assert_int_equal(quantity_double("-2e-3", &v, NULL), TENREC_OK);
    assert_true(v == -2e-3);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(quantity_double(bad[i], &v, NULL), TENREC_EINVAL);
    setlocale(LC_ALL, "C");
}

TEST(quantity_print_is_read_back)
{
    static const uint64_t values[] = { 0,     1,      250,    999,     1000,    1500,
                                       60000, 120000, 300000, 3600000, 5400000, UINT64_MAX };
    static const char *const texts[] = { "0s",  "1ms",  "250ms", "999ms", "1s",  "1500ms",
                                         "60s", "120s", "5m",    "1h",    "90m", "none" };
    char buf[QUANTITY_TEXT_MAX];

    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        uint64_t back;
        assert_string_equal(quantity_print_duration(values[i], buf), texts[i]);
        assert_int_equal(quantity_duration(buf, false, &back, NULL), TENREC_OK);
        assert_true(back == values[i]);
    }
    assert_string_equal(quantity_print_size(0, buf), "0");
    assert_string_equal(quantity_print_size(1000, buf), "1000");
    assert_string_equal(quantity_print_size(65536, buf), "64KiB");
    assert_string_equal(quantity_print_size((uint64_t)3 << 20, buf), "3MiB");
    assert_string_equal(quantity_print_size((uint64_t)1 << 40, buf), "1024GiB");
}

TEST(nearest_names_the_intended_word)
{
    static const char choices[] = "busy|adaptive|sleep|delay|messages_to_fail";
    static const char *const cases[][2] = {
        { "dealy", "delay" },
        { "bussy", "busy" },
        { "Sleep", "sleep" },
        { "adaptve", "adaptive" },
        { "message_to_fail", "messages_to_fail" },
        { "nothing", NULL },
        { "x", NULL },
        { "", NULL },
    };
    struct suggestion near;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        suggest_init(&near, cases[i][0]);
        suggest_try_choices(&near, choices);
        if (cases[i][1]) {
            assert_non_null(suggest_name(&near));
            assert_string_equal(suggest_name(&near), cases[i][1]);
        } else {
            assert_null(suggest_name(&near));
            assert_string_equal(suggest_guess(&near), "");
            assert_string_equal(suggest_hint(&near),
                                " (known: busy, adaptive, sleep, delay, messages_to_fail)");
        }
    }
    suggest_init(&near, "dealy");
    suggest_try(&near, "delay");
    assert_string_equal(suggest_hint(&near), " (did you mean 'delay'?)");
}

TEST(nearest_is_a_typing_error_away)
{
    static const char *const cases[][2] = {
        { "http", "otlp" }, { "tpc", "ucx" }, { "nope", "echo" }, { "limits", "faulty" }
    };
    struct suggestion near;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        suggest_init(&near, cases[i][0]);
        suggest_try(&near, cases[i][1]);
        assert_null(suggest_name(&near));
    }
}

TEST(names_that_do_not_fit_into_a_hint_are_left_out_whole)
{
    struct suggestion near;
    char name[16];

    suggest_init(&near, "unlike all of them");
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "name%d", i);
        suggest_try(&near, name);
    }
    assert_non_null(strstr(suggest_hint(&near), ", name10, name11, "));
    assert_string_equal(strrchr(near.hint, ' '), " ...)");
    suggest_init(&near, "alone");
    assert_string_equal(suggest_hint(&near), "");
}

TEST(nearest_is_no_name_that_differs_in_a_number_only)
{
    static const char *const cases[][2] = {
        { "worker9", NULL },     { "worker12", NULL },      { "9", NULL },
        { "worker", "worker1" }, { "worker_1", "worker1" }, { "wroker9", "worker1" },
    };
    struct suggestion near;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        suggest_init(&near, cases[i][0]);
        suggest_try_choices(&near, "worker1|7");
        if (cases[i][1])
            assert_string_equal(suggest_name(&near), cases[i][1]);
        else
            assert_null(suggest_name(&near));
    }
}

TEST(nearest_survives_words_of_any_length)
{
    char word[300];
    struct suggestion near;

    memset(word, 'a', sizeof word - 1);
    word[sizeof word - 1] = '\0';
    suggest_init(&near, word);
    suggest_try(&near, "aaaa");
    suggest_try(&near, word);
    assert_null(suggest_name(&near));
    word[SUGGEST_WORD_MAX] = '\0';
    suggest_init(&near, word);
    suggest_try(&near, word);
    assert_string_equal(suggest_name(&near), word);
}
