/* SPDX-License-Identifier: Apache-2.0 */
/* trial.h - calls a function that may crash or hang, in a process of its own. */
#ifndef TENREC_TOOLS_TRIAL_H
#define TENREC_TOOLS_TRIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* `to` receives the answer for the caller. */
typedef void trial_fn(void *arg, FILE *to);

/* What a function wrote; free(text). */
struct trial_output {
    char *text; /* ends with a '\0' that `len` does not count */
    size_t len;
};

/* Calls fn(arg) in a child, whose stdout and stderr are dropped. Returns true if fn returned within
 * ten seconds; else `text` says how the call ended: "is killed by signal 11 (Segmentation fault)",
 * "does not return within 10 s".
 *
 * ret   NULL: what fn writes is dropped, as is all beyond TRIAL_MAX; its text is NULL without
 *       memory, and where no child could be made */
bool trial_run(trial_fn *fn, void *arg, struct trial_output *ret, char *text, size_t size);

enum { TRIAL_MAX = 1 << 20 };

#endif
