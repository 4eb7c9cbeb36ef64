/* SPDX-License-Identifier: Apache-2.0 */
/* environment.h - the variables that the library finds: a list of the test's own. For programs that
 * are linked with
 * --wrap=secure_getenv. */
#ifndef TESTS_MEETING_ENVIRONMENT_H
#define TESTS_MEETING_ENVIRONMENT_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* NAME, value, NAME, value, ..., NULL: all variables that the calling thread finds, and the secret
 * of the run. */
static const char *const nothing[] = { NULL };
static _Thread_local const char *const *environment = nothing;

char *__wrap_secure_getenv(const char *name);
char *__wrap_secure_getenv(const char *name)
{
    for (const char *const *at = environment; *at; at += 2)
        if (strcmp(at[0], name) == 0)
            return (char *)(uintptr_t)at[1];
    return strcmp(name, "TENREC_SECRET_FILE") == 0 ? getenv(name) : NULL;
}

#define ENV(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define MASTER "MASTER_ADDR", "10.1.2.3", "MASTER_PORT", "29500"

#endif
