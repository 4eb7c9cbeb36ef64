/* SPDX-License-Identifier: Apache-2.0 */
#include "../testing.h"
#include <stdio.h>
#include <tenrec/rpc.h>
#include <tenrec/version.h>

TEST(version_text_and_number_are_those_of_the_header)
{
    char text[32];

    snprintf(text, sizeof text, "%d.%d.%d", TENREC_VERSION_MAJOR, TENREC_VERSION_MINOR,
             TENREC_VERSION_PATCH);
    assert_string_equal(tenrec_version_text(), text);
    assert_string_equal(TENREC_VERSION_TEXT, text);
    assert_int_equal(tenrec_version_number(), TENREC_VERSION_MAJOR * 10000 +
                                                  TENREC_VERSION_MINOR * 100 +
                                                  TENREC_VERSION_PATCH);
}

#if TENREC_VERSION_AT_LEAST(TENREC_VERSION_MAJOR, TENREC_VERSION_MINOR, TENREC_VERSION_PATCH + 1)
#error "a later version is not this one"
#endif

TEST(version_is_at_least_itself_and_not_the_next)
{
    assert_true(
        TENREC_VERSION_AT_LEAST(TENREC_VERSION_MAJOR, TENREC_VERSION_MINOR, TENREC_VERSION_PATCH));
    assert_false(TENREC_VERSION_AT_LEAST(TENREC_VERSION_MAJOR, TENREC_VERSION_MINOR + 1, 0));
    assert_false(TENREC_VERSION_AT_LEAST(TENREC_VERSION_MAJOR + 1, 0, 0));
}
