/* SPDX-License-Identifier: Apache-2.0 */
/* trial.h - calls a function that may crash or hang, in a process of its own. */
#ifndef TENREC_TOOLS_TRIAL_H
#define TENREC_TOOLS_TRIAL_H

#include <stdbool.h>
#include <stddef.h>

typedef void trial_fn(void *arg);

/* Calls fn(arg) in a child, whose output is dropped. Returns true if fn returned
 * within ten seconds; else `text` says how the call ended: "is killed by signal 11
 * (Segmentation fault)", "does not return within 10 s". */
bool trial_run(trial_fn *fn, void *arg, char *text, size_t size);

#endif
