/* SPDX-License-Identifier: Apache-2.0 */
/* together.h - several threads that do the same at once. */
#ifndef TESTS_SUPPORT_TOGETHER_H
#define TESTS_SUPPORT_TOGETHER_H

#include <tenrec/tenrec.h>

struct together {
    struct tenrec_worker *w;
    size_t rank;
    const char *const *names;
    size_t n;
    int rounds;
    const char *why; /* it went wrong */
};

#endif
