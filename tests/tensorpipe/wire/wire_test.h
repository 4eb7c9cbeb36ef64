/* SPDX-License-Identifier: Apache-2.0 */
/* wire_test.h - what every test of the byte formats includes. */
#ifndef WIRE_TEST_H
#define WIRE_TEST_H

#include "../../testing.h"
#include "hex.h"

#define assert_bytes_are(bytes, text) assert_true(nop_bytes_is(bytes, text))

#endif
