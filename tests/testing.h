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

/* Polls until `condition` holds; fails after ten seconds. */
#define assert_becomes(condition)                                                                  \
    do {                                                                                           \
        unsigned left_ = 10000;                                                                    \
        while (!(condition) && left_-- > 0)                                                        \
            poll(NULL, 0, 1);                                                                      \
        if (!(condition))                                                                          \
            fail_msg("%s does not come true", #condition);                                         \
    } while (0)

#endif
