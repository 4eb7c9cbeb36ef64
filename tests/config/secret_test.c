/* SPDX-License-Identifier: Apache-2.0 */
/* secret_test.c - what is printed in the place of passwords. */
#include "../testing.h"

#include "core/config/config.h"

#include <stdlib.h>
#include <string.h>

TEST(secret_mask_hides_passwords_of_any_characters)
{
    static const char *const cases[][2] = {
        { "redis://me:pw@h:1/p", "redis://me:***@h:1/p" },
        { "redis://:pw@h", "redis://:***@h" },
        { "redis://me:se,cret1@h", "redis://me:***@h" },
        { "redis://me:se'cret2@h", "redis://me:***@h" },
        { "redis://me:se\"cret3@h", "redis://me:***@h" },
        { "redis://me:se cret4@h", "redis://me:***@h" },
        { "redis://me:a@b/c@h", "redis://me:***@h" },
        { "redis://me:a\nb\tc@h", "redis://me:***@h" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *masked = secret_mask(cases[i][0]);
        assert_string_equal(masked, cases[i][1]);
        assert_true(secret_is_in(cases[i][0]));
        free(masked);
    }
}

TEST(secret_mask_hides_passwords_of_mistyped_urls)
{
    static const char *const cases[][2] = {
        { "redis:me:topsecret@h", "redis:***@h" },
        { "redis:/me:topsecret@h/p", "redis:***@h/p" },
        { "redis://:topsecret", "redis://:***" },
        { "redis://me:top/secret", "redis://me:***" },
        { "redis://topsecret@h", "redis://***@h" },
        { "redis://[::1]:topsecret", "redis://[::1]:***" },
        { "redis://h:6379x", "redis://h:***" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *masked = secret_mask(cases[i][0]);
        assert_string_equal(masked, cases[i][1]);
        free(masked);
    }
}

TEST(secret_mask_leaves_other_texts_unchanged)
{
    static const char *const cases[] = {
        "",
        "env://",
        "tcp://127.0.0.1:29500",
        "tcp://[fd00::1]:29500?rank=1&world_size=2",
        "redis://h/p",
        "file:///tmp/a:b@c",
        "memory://a@b",
        "{0: 1, 2: 3}",
        "localhost:80",
        "worker{rank}",
        "[tcp://h:1, uv]",
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *masked = secret_mask(cases[i]);
        assert_string_equal(masked, cases[i]);
        assert_false(secret_is_in(cases[i]));
        free(masked);
    }
}

TEST(secret_scrub_hides_a_secret_that_an_error_repeats)
{
    tenrec_error err;

    tenrec_fail(&err, TENREC_EINVAL, "no 'se,cret' in redis://me:se,cret@h");
    secret_scrub(&err, "redis://me:se,cret@h");
    assert_string_equal(err.text, "no '***' in redis://me:***@h");
}

/* A password longer than an error text, whose end is cut. */
TEST(secret_scrub_hides_the_beginning_of_a_truncated_secret)
{
    char url[800] = "redis://me:";
    tenrec_error err;

    memset(url + 11, 'x', 700);
    strcat(url, "@h");
    tenrec_fail(&err, TENREC_EINVAL, "cannot read %s", url);
    secret_scrub(&err, url);
    assert_string_equal(err.text, "cannot read redis://me:");
}
