/* SPDX-License-Identifier: Apache-2.0 */
#include "top/table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenrec/error.h>
#include <wchar.h>

enum { NEVER_DROPPED = 9, TEXT_MOST = 32 };

/* ---- text --------------------------------------------------------------------------- */

/* One character, and its columns; a byte that is none becomes '?'. */
static size_t text_next(const char *at, char ret[8], int *ret_width)
{
    mbstate_t state;
    wchar_t c;
    size_t n;

    memset(&state, 0, sizeof state);
    n = mbrtowc(&c, at, strlen(at), &state);
    if (n == (size_t)-1 || n == (size_t)-2 || n == 0 || n > 6 || wcwidth(c) < 0) {
        memcpy(ret, "?", 2);
        *ret_width = 1;
        return n == (size_t)-1 || n == (size_t)-2 || n == 0 || n > 6 ? 1 : n;
    }
    memcpy(ret, at, n);
    ret[n] = '\0';
    *ret_width = wcwidth(c);
    return n;
}

static int text_width(const char *text)
{
    char one[8];
    int width = 0, w;

    for (size_t i = 0; text[i]; width += w)
        i += text_next(text + i, one, &w);
    return width;
}

void table_fit(char *to, size_t room, const char *raw, int width, bool right)
{
    char clean[2 * TABLE_TEXT_MAX], one[8];
    size_t at = 0;
    int used = 0, whole, w;

    tenrec_text_escape(clean, sizeof clean, raw, "");
    whole = text_width(clean);
    for (; right && used < width - whole && at + 1 < room; used++)
        to[at++] = ' ';
    for (size_t i = 0; clean[i] && at + sizeof one < room;) {
        i += text_next(clean + i, one, &w);
        if (used + w > width - (whole > width)) {
            if (used < width) {
                to[at++] = '~';
                used++;
            }
            break;
        }
        memcpy(to + at, one, strlen(one));
        at += strlen(one);
        used += w;
    }
    for (; used < width && at + 1 < room; used++)
        to[at++] = ' ';
    to[at] = '\0';
}

static void number_scaled(char to[16], double v, double step, const char *const unit[], int n)
{
    int i = 0;

    while (i + 1 < n && v >= 999.5) {
        v /= step;
        i++;
    }
    snprintf(to, 16,
             v >= 99.5 || (i == 0 && v == floor(v)) ? "%.0f%s"
             : v >= 9.95                            ? "%.1f%s"
                                                    : "%.2f%s",
             v, unit[i]);
}

void table_number(char to[16], enum table_kind kind, double number)
{
    static const char *const count[] = { "", "k", "M", "G", "T" },
                             *const bytes[] = { "", "K", "M", "G", "T" },
                             *const seconds[] = { "us", "ms", "s" };

    if (isnan(number))
        snprintf(to, 16, "-");
    else if (kind == TABLE_SECONDS && number >= 0.9995)
        snprintf(to, 16, number >= 99.5 ? "%.0fs" : "%.2fs", number);
    else if (kind == TABLE_SECONDS)
        number_scaled(to, number * 1e6, 1000, seconds, 3);
    else if (kind == TABLE_BYTES)
        number_scaled(to, number, 1024, bytes, 5);
    else
        number_scaled(to, number, 1000, count, 5);
}

/* ---- layout --------------------------------------------------------------------------- */

int table_column_find(const struct table *t, const char *key)
{
    for (int i = 0; i < t->n_columns; i++)
        if (strcmp(t->column[i].key, key) == 0)
            return i;
    return -1;
}

static int layout_width(const struct table_layout *l)
{
    int width = 0;

    for (int i = 0; i < l->n; i++)
        width += l->width[i] + (i > 0);
    return width;
}

/* Returns false if all columns have to stay. */
static bool layout_drop(const struct table *t, struct table_layout *l)
{
    int least = -1;

    for (int i = 0; i < l->n; i++)
        if (least < 0 || t->column[l->column[i]].priority <= t->column[l->column[least]].priority)
            least = i;
    if (least < 0 || t->column[l->column[least]].priority >= NEVER_DROPPED)
        return false;
    l->n--;
    for (int i = least; i < l->n; i++) {
        l->column[i] = l->column[i + 1];
        l->width[i] = l->width[i + 1];
    }
    return true;
}

/* The widest text of a column. */
static int column_need(const struct table *t, int column)
{
    int need = t->column[column].width;

    for (size_t i = 0; i < t->n; i++) {
        char clean[2 * TABLE_TEXT_MAX];

        tenrec_text_escape(clean, sizeof clean, t->row[i].cell[column].text, "");
        need = text_width(clean) > need ? text_width(clean) : need;
    }
    return need < TEXT_MOST ? need : TEXT_MOST;
}

void table_lay_out(const struct table *t, int width, struct table_layout *ret)
{
    int spare;

    ret->n = t->n_columns;
    for (int i = 0; i < t->n_columns; i++) {
        ret->column[i] = i;
        ret->width[i] = t->column[i].width;
    }
    while (layout_width(ret) > width && layout_drop(t, ret))
        ;
    spare = width - layout_width(ret);
    if (ret->n && spare < 0)
        ret->width[0] = ret->width[0] + spare > 1 ? ret->width[0] + spare : 1;
    for (int i = 0; i < ret->n && spare > 0; i++) {
        int more;

        if (t->column[ret->column[i]].kind != TABLE_TEXT)
            continue;
        more = column_need(t, ret->column[i]) - ret->width[i];
        more = more < spare ? more : spare;
        ret->width[i] += more;
        spare -= more;
    }
}

void table_print_heading(const struct table *t, const struct table_layout *l, int sorted, char *to)
{
    size_t at = 0;

    *to = '\0';
    for (int i = 0; i < l->n; i++) {
        const struct table_column *c = &t->column[l->column[i]];
        char title[32];

        snprintf(title, sizeof title, "%s%s", c->title, l->column[i] == sorted ? "*" : "");
        if (i)
            to[at++] = ' ';
        table_fit(to + at, TABLE_LINE_MAX - at - 1, title, l->width[i], c->kind != TABLE_TEXT);
        at += strlen(to + at);
    }
}

void table_print_row(const struct table *t, const struct table_layout *l, const struct table_row *r,
                     char *to)
{
    size_t at = 0;

    *to = '\0';
    for (int i = 0; i < l->n; i++) {
        const struct table_column *c = &t->column[l->column[i]];
        const struct table_cell *cell = &r->cell[l->column[i]];
        char number[16];

        if (c->kind != TABLE_TEXT)
            table_number(number, c->kind, cell->number);
        if (i)
            to[at++] = ' ';
        table_fit(to + at, TABLE_LINE_MAX - at - 1, c->kind == TABLE_TEXT ? cell->text : number,
                  l->width[i], c->kind != TABLE_TEXT);
        at += strlen(to + at);
    }
}

/* ---- order ------------------------------------------------------------------------------ */

static int cell_compare(const struct table_column *c, const struct table_cell *a,
                        const struct table_cell *b)
{
    if (c->kind == TABLE_TEXT)
        return strcmp(a->text, b->text);
    if (isnan(a->number) || isnan(b->number))
        return isnan(a->number) - isnan(b->number);
    return (a->number < b->number) - (a->number > b->number);
}

/* By insertion into the sorted half: stable, and the order changes little between two samples. */
void table_sort(struct table *t, int column)
{
    for (size_t i = 1; i < t->n; i++) {
        const struct table_row row = t->row[i];
        size_t low = 0, high = i;

        while (low < high) {
            const size_t mid = (low + high) / 2;

            if (cell_compare(&t->column[column], &row.cell[column], &t->row[mid].cell[column]) < 0)
                high = mid;
            else
                low = mid + 1;
        }
        memmove(&t->row[low + 1], &t->row[low], (i - low) * sizeof row);
        t->row[low] = row;
    }
}
