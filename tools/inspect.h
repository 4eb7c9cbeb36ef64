/* SPDX-License-Identifier: Apache-2.0 */
/* inspect.h - `tenrec info --worker`: the debug info of a running worker. */
#ifndef TENREC_TOOLS_INSPECT_H
#define TENREC_TOOLS_INSPECT_H

#include "outside.h"
#include "tool.h"

/* Prints the debug info of worker `name`. Returns the exit status. */
int inspect(const struct tool *self, struct outside *o, const char *name, bool as_json);

#endif
