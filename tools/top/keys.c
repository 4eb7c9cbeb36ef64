/* SPDX-License-Identifier: Apache-2.0 */
#include "top/keys.h"

#include <stdio.h>
#include <string.h>

void keys_scroll(struct keys_state *k, size_t n, int page)
{
    const size_t rows = page > 0 ? (size_t)page : 1;

    if (k->cursor >= n)
        k->cursor = n ? n - 1 : 0;
    if (k->first > k->cursor)
        k->first = k->cursor;
    if (k->first + rows <= k->cursor)
        k->first = k->cursor + 1 - rows;
    if (k->first + rows > n)
        k->first = n > rows ? n - rows : 0;
}

static void keys_show(struct keys_state *k, enum keys_view view, const char *worker)
{
    k->view = view;
    snprintf(k->worker, sizeof k->worker, "%s", worker);
    k->cursor = k->first = 0;
}

static void keys_move(struct keys_state *k, long by, size_t n)
{
    if (by < 0 && (size_t)-by > k->cursor)
        k->cursor = 0;
    else
        k->cursor += (size_t)by;
    if (k->cursor >= n)
        k->cursor = n ? n - 1 : 0;
}

static void keys_sort_next(struct keys_state *k, int by, const struct table *t)
{
    k->sort[k->view] = (k->sort[k->view] + by + t->n_columns) % t->n_columns;
    k->reverse[k->view] = false;
}

enum keys_order keys_take(struct keys_state *k, int code, const struct table *t, int page)
{
    const bool help = k->help;

    k->help = false; /* any key closes it */
    switch (code) {
    case 'q':
        return KEYS_QUIT;
    case 'd':
        return KEYS_TIME;
    case '?':
    case 'h':
        k->help = !help;
        break;
    case 'f':
        keys_show(k, k->view == KEYS_WORKERS ? KEYS_FUNCTIONS : KEYS_WORKERS, "");
        break;
    case KEYS_ENTER:
        if (k->view == KEYS_WORKERS && k->cursor < t->n)
            keys_show(k, KEYS_FUNCTIONS, t->row[k->cursor].cell[0].text);
        break;
    case KEYS_ESCAPE:
        if (!help)
            keys_show(k, KEYS_WORKERS, "");
        break;
    case 'r':
        k->reverse[k->view] = !k->reverse[k->view];
        break;
    case '<':
    case KEYS_LEFT:
        keys_sort_next(k, -1, t);
        break;
    case '>':
    case KEYS_RIGHT:
        keys_sort_next(k, 1, t);
        break;
    case KEYS_UP:
    case 'k':
        keys_move(k, -1, t->n);
        break;
    case KEYS_DOWN:
    case 'j':
        keys_move(k, 1, t->n);
        break;
    case KEYS_PAGE_UP:
        keys_move(k, -(long)page, t->n);
        break;
    case KEYS_PAGE_DOWN:
        keys_move(k, page, t->n);
        break;
    case KEYS_FIRST:
        k->cursor = 0;
        break;
    case KEYS_LAST:
        k->cursor = t->n ? t->n - 1 : 0;
        break;
    default:
        k->help = help && code == KEYS_NONE;
        break;
    }
    return KEYS_STAY;
}
