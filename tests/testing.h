/* SPDX-License-Identifier: Apache-2.0 */
/* testing.h - cmocka, and asserts that print what they saw. */
#ifndef TENREC_TESTS_TESTING_H
#define TENREC_TESTS_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <tenrec/error.h>

/* The call went well; else its error is shown. */
#define assert_status(call, err)                                                                   \
    do {                                                                                           \
        if ((call) != TENREC_OK)                                                                   \
            fail_msg("%s: %s", #call, (err)->text);                                                \
    } while (0)

#define assert_text_has(text, part)                                                                \
    do {                                                                                           \
        if (!strstr((text), (part)))                                                               \
            fail_msg("'%s' is not in '%s'", (part), (text));                                       \
    } while (0)

/* How many times slower than plain the run is: under a sanitizer, or valgrind. */
static inline unsigned long testing_slow(void)
{
    const char *slow = getenv("TENREC_TEST_SLOW");
    const unsigned long times = slow ? strtoul(slow, NULL, 10) : 1;

    return times > 0 && times <= 100 ? times : 1;
}

/* Looks, a millisecond apart, before assert_becomes fails. */
static inline unsigned long testing_looks(void)
{
    return 10000 * testing_slow();
}

/* Polls until `condition` holds; fails after ten seconds, or longer where the run is slow. */
#define assert_becomes(condition)                                                                  \
    do {                                                                                           \
        unsigned long left_ = testing_looks();                                                     \
        while (!(condition) && left_-- > 0)                                                        \
            poll(NULL, 0, 1);                                                                      \
        if (!(condition))                                                                          \
            fail_msg("%s does not come true", #condition);                                         \
    } while (0)

#endif
