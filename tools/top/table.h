/* SPDX-License-Identifier: Apache-2.0 */
/* table.h - rows and columns as lines of text: which columns fit, in which order the rows stand.
 * Lines have as many columns of a terminal as asked for, whatever bytes a text has. */
#ifndef TENREC_TOOLS_TOP_TABLE_H
#define TENREC_TOOLS_TOP_TABLE_H

#include <stdbool.h>
#include <stddef.h>

enum { TABLE_COLUMNS_MAX = 24, TABLE_LINE_MAX = 4096, TABLE_TEXT_MAX = 256 };

enum table_kind { TABLE_TEXT, TABLE_COUNT, TABLE_RATE, TABLE_SECONDS, TABLE_BYTES };

struct table_column {
    const char *key, *title;
    int width;    /* of a text: the least */
    int priority; /* the columns with the lowest go first; 9: never */
    enum table_kind kind;
};

struct table_cell {
    double number;    /* NAN: unknown */
    const char *text; /* TABLE_TEXT: borrowed */
};

struct table_row {
    struct table_cell cell[TABLE_COLUMNS_MAX];
};

struct table {
    const struct table_column *column;
    int n_columns;
    struct table_row *row;
    size_t n;
};

/* The columns that fit into `width`, and their widths. */
struct table_layout {
    int n, column[TABLE_COLUMNS_MAX], width[TABLE_COLUMNS_MAX];
};

void table_lay_out(const struct table *t, int width, struct table_layout *ret);

/* The index of a column by its key; -1: none. */
int table_column_find(const struct table *t, const char *key);

/* Sorts by a column: numbers downwards, unknown ones last, texts upwards. Equal rows keep their
 * order. */
void table_sort(struct table *t, int column);

/* One line without a newline; `to` has TABLE_LINE_MAX bytes. `sorted`: the column that the heading
 * marks; -1: none. */
void table_print_heading(const struct table *t, const struct table_layout *l, int sorted, char *to);
void table_print_row(const struct table *t, const struct table_layout *l, const struct table_row *r,
                     char *to);

/* Writes `raw` in exactly `width` columns of a terminal: control characters are escaped, bytes that
 * are no text of the locale become '?', and a text that is too long ends in '~'. */
void table_fit(char *to, size_t room, const char *raw, int width, bool right);

/* A number in at most 6 columns: "1.25k", "3.4ms", "-" when unknown. */
void table_number(char to[16], enum table_kind kind, double number);

#endif
