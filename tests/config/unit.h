/* SPDX-License-Identifier: Apache-2.0 */
/* unit.h - what every test of config includes first of cmocka. */
#ifndef TENREC_TESTS_CONFIG_UNIT_H
#define TENREC_TESTS_CONFIG_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#endif
