/* SPDX-License-Identifier: Apache-2.0 */
/* test_store.h - what the tests of stores and of groups share. */
#ifndef TENREC_TESTS_TEST_STORE_H
#define TENREC_TESTS_TEST_STORE_H

#include "../testing.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <tenrec/store.h>
#include <unistd.h>

#define TEST_MS 20000 /* a limit that only a bug reaches */

#endif
