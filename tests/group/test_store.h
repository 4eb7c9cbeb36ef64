/* test_store.h - what the tests of the group part share. */
#ifndef TEST_STORE_H
#define TEST_STORE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <tenrec/store.h>

#define TEST_MS 20000 /* a limit that only a bug reaches */

/* Fails with the error's text when `call` did not succeed. */
#define must(call, err)                                                                            \
    do {                                                                                           \
        tenrec_status must_st = (call);                                                            \
        if (must_st != TENREC_OK)                                                                  \
            fail_msg("%s: %s (%s)", #call, (err)->text, tenrec_status_name(must_st));              \
    } while (0)

#define assert_has(text, part)                                                                     \
    do {                                                                                           \
        if (!strstr(text, part))                                                                   \
            fail_msg("\"%s\" is not in \"%s\"", part, text);                                       \
    } while (0)

#endif
