/* SPDX-License-Identifier: Apache-2.0 */
/* keys.h - what the keys have chosen: the view, the order of rows, the row under the cursor. */
#ifndef TENREC_TOOLS_TOP_KEYS_H
#define TENREC_TOOLS_TOP_KEYS_H

#include "top/table.h"

#include <tenrec/types.h>

enum keys_view { KEYS_WORKERS, KEYS_FUNCTIONS };

/* Codes of keys that are no characters. */
enum keys_code {
    KEYS_NONE = -1,
    KEYS_UP = 0x1000,
    KEYS_DOWN,
    KEYS_PAGE_UP,
    KEYS_PAGE_DOWN,
    KEYS_FIRST,
    KEYS_LAST,
    KEYS_LEFT,
    KEYS_RIGHT,
    KEYS_ENTER,
    KEYS_ESCAPE,
};

/* What the screen has to do. */
enum keys_order { KEYS_STAY, KEYS_QUIT, KEYS_TIME };

struct keys_state {
    enum keys_view view;
    char worker[TENREC_NAME_MAX + 1]; /* whose functions; "" of the whole group */
    int sort[2];                      /* column of each view */
    bool reverse[2], help;
    size_t cursor, first; /* rows, in the order that is shown */
};

/* `t`: the rows that are shown, sorted; `page`: rows that fit on the screen. */
enum keys_order keys_take(struct keys_state *k, int code, const struct table *t, int page);

/* Moves the cursor into `n` rows, and the page to the cursor. */
void keys_scroll(struct keys_state *k, size_t n, int page);

#endif
