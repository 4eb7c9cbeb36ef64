/* SPDX-License-Identifier: Apache-2.0 */
/* inspect.h - `tenrec info --worker`: what a worker that runs tells of itself. */
#ifndef TENREC_TOOLS_INSPECT_H
#define TENREC_TOOLS_INSPECT_H

#include "outside.h"
#include "tool.h"

/* Asks worker `name` and prints. Returns the exit status. */
int inspect(const struct tool *self, struct outside *o, const char *name, bool as_json);

#endif
