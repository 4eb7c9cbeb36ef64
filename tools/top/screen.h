/* SPDX-License-Identifier: Apache-2.0 */
/* screen.h - the full screen of `tenrec top`. */
#ifndef TENREC_TOOLS_TOP_SCREEN_H
#define TENREC_TOOLS_TOP_SCREEN_H

#include "tool.h"
#include "top/sampler.h"

/* Shows the group until a key or a signal ends it; the terminal is as before then. `sort`: key of a
 * column. Returns the exit status. */
int screen_run(const struct tool *self, struct sampler *s, const char *sort);

#endif
