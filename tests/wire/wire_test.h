/* SPDX-License-Identifier: Apache-2.0 */
/* wire_test.h - what every test of the byte formats includes. */
#ifndef WIRE_TEST_H
#define WIRE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hex.h"

#define assert_text_has(text, part)                                                                \
    do {                                                                                           \
        if (!strstr(text, part))                                                                   \
            fail_msg("\"%s\" does not contain \"%s\"", text, part);                                \
    } while (0)

#define assert_bytes_are(bytes, text) assert_true(nop_bytes_is(bytes, text))

#endif
