/* SPDX-License-Identifier: Apache-2.0 */
/* torture_life.h - the whole life of a chain of one worker, for torture: it begins, sends, ends. */
#ifndef TENREC_TESTS_SUPPORT_TORTURE_LIFE_H
#define TENREC_TESTS_SUPPORT_TORTURE_LIFE_H

#include <stddef.h>
#include <tenrec/config.h>

struct torture_life {
    struct tenrec_config *config;
    const int32_t *type; /* of the messages that the worker sends to itself, in turn */
    size_t n_types, n_sends;
};

/* For torture(); arg: a struct torture_life. Fails the case unless each send completes once. */
tenrec_status torture_life(void *arg, tenrec_error *err);

#endif
