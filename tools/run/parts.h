/* SPDX-License-Identifier: Apache-2.0 */
/* parts.h - joins the traces of several workers of one machine. */
#ifndef TENREC_TOOLS_PARTS_H
#define TENREC_TOOLS_PARTS_H

#include "tool.h"

/* A folder into which each worker writes "<rank>.json". */
struct parts {
    const char *path; /* of the joined trace; borrowed */
    char *folder;
    char *setting; /* "NAME=value" for the environment of the workers */
};

/* Makes the folder, and checks that `path` can be written. Returns TOOL_OK, or
 * after a message an exit status. */
int parts_open(const struct tool *self, const char *path, struct parts *ret);

/* Joins the traces of `n` workers, removes the folder, and reports the workers
 * without a trace: a failure unless `some_missing`. Returns TOOL_OK or an exit
 * status. */
int parts_join(const struct tool *self, struct parts *p, int n, bool some_missing);

#endif
