/* SPDX-License-Identifier: Apache-2.0 */
/* basic_functions.h - functions for any worker; of libtenrec alone, so that plain programs may
 * offer them, too. */
#ifndef TESTS_SUPPORT_BASIC_FUNCTIONS_H
#define TESTS_SUPPORT_BASIC_FUNCTIONS_H

#include <tenrec/tenrec.h>

tenrec_function_fn basic_noop;
/* The sum of two ints. */
tenrec_function_fn basic_add;
/* Its one argument. */
tenrec_function_fn basic_echo;
/* The array of its arguments. */
tenrec_function_fn basic_identity;

struct basic_function {
    const char *name;
    tenrec_function_fn *fn;
    uint32_t flags;
    void *arg;
};

/* Registers `n` functions, up to the first that fails. */
tenrec_status basic_register(struct tenrec_worker *w, const struct basic_function *list, size_t n,
                             tenrec_error *err);

#endif
