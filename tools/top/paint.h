/* SPDX-License-Identifier: Apache-2.0 */
/* paint.h - draws samples on the terminal that curses has opened. */
#ifndef TENREC_TOOLS_TOP_PAINT_H
#define TENREC_TOOLS_TOP_PAINT_H

#include "top/feed.h"
#include "top/keys.h"
#include "top/view.h"

enum { PAINT_ABOVE = 3 }; /* lines above the rows */

void paint_prepare(void); /* colours */

/* Makes the rows that the keys chose, sorted. The feed is locked until view_finish. */
void paint_rows(const struct feed *f, const struct keys_state *k, struct view *ret);

/* The feed is locked. */
void paint(const struct feed *f, struct keys_state *k, const struct view *v);

#endif
