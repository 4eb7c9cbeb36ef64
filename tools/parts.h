/* SPDX-License-Identifier: Apache-2.0 */
/* parts.h - the traces of several workers of one machine, joined into one. */
#ifndef TENREC_TOOLS_PARTS_H
#define TENREC_TOOLS_PARTS_H

#include "tool.h"

/* A folder into which each worker writes "<rank>.json". */
struct parts {
    const char *path; /* of the joined trace; borrowed */
    char *folder;
    char *setting; /* "NAME=value" that makes the workers write there */
};

/* Makes the folder, and sees that `path` can be written. TOOL_OK or an exit
 * status; what is wrong has been said. */
int parts_open(const struct tool *self, const char *path, struct parts *ret);

/* Joins what `n` workers wrote, takes the folder away, and says who wrote
 * nothing: a failure unless some may be missing. Returns TOOL_OK or an exit
 * status. */
int parts_join(const struct tool *self, struct parts *p, int n, bool some_missing);

#endif
