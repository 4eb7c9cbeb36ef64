/* SPDX-License-Identifier: Apache-2.0 */
#include "top/paint.h"

#include "base/clock.h"
#include "top/print.h"

#include <curses.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PLAIN, HEAD, BAD, WARN, GOOD };

void paint_prepare(void)
{
    if (!has_colors())
        return;
    start_color();
    use_default_colors();
    init_pair(HEAD, COLOR_CYAN, -1);
    init_pair(BAD, COLOR_RED, -1);
    init_pair(WARN, COLOR_YELLOW, -1);
    init_pair(GOOD, COLOR_GREEN, -1);
}

static attr_t paint_tint(int pair)
{
    return has_colors() ? COLOR_PAIR(pair) : A_NORMAL;
}

static void paint_line(int y, attr_t how, const char *text)
{
    char line[TABLE_LINE_MAX];

    if (y >= LINES)
        return;
    table_fit(line, sizeof line, text, COLS, false);
    attrset(how);
    mvaddstr(y, 0, line);
    attrset(A_NORMAL);
}

void paint_rows(const struct feed *f, const struct keys_state *k, struct view *ret)
{
    static const struct sample none;
    const struct sample *before = f->has_before ? &f->before : NULL,
                        *now = f->has_now ? &f->now : &none;

    if (k->view == KEYS_WORKERS)
        view_workers(before, now, ret);
    else
        view_functions(before, now, *k->worker ? k->worker : NULL, ret);
    table_sort(&ret->table, k->sort[k->view], k->reverse[k->view]);
}

static void paint_title(const struct feed *f)
{
    char line[TABLE_LINE_MAX], age[32];
    const unsigned long long s = (clock_now_ns() - f->now.at_ns) / 1000000000;
    int n = snprintf(age, sizeof age, " %llus ago", s);

    if (COLS < 3 * n)
        return;
    print_title(f->has_before ? &f->before : NULL, &f->now, COLS - n, line, sizeof line);
    attrset(paint_tint(HEAD) | A_BOLD);
    mvaddstr(0, 0, line);
    attrset(A_NORMAL);
    mvaddstr(0, COLS - n, age);
}

/* The most important of what there is to say. */
static void paint_hint(const struct feed *f, const struct keys_state *k, const struct view *v)
{
    const struct sample_worker *w = NULL;
    char text[1024];
    int untimed = 0;

    for (size_t i = 0; i < f->now.n; i++)
        untimed += f->now.worker[i].reading.answered && !f->now.worker[i].reading.timed;
    if (k->view == KEYS_WORKERS && k->cursor < v->table.n)
        w = v->table.row[k->cursor].of;
    if (*f->now.error) {
        snprintf(text, sizeof text, "store does not answer, retrying: %s", f->now.error);
        paint_line(1, paint_tint(BAD), text);
    } else if (*f->note) {
        paint_line(1, paint_tint(WARN), f->note);
    } else if (w && *w->why) {
        snprintf(text, sizeof text, "%s is %s: %s", w->name, sample_state_name(w->state), w->why);
        paint_line(1, paint_tint(WARN), text);
    } else if (untimed) {
        snprintf(text, sizeof text, "durations are off in %d worker%s: key d turns them on",
                 untimed, untimed == 1 ? "" : "s");
        paint_line(1, paint_tint(WARN), text);
    } else if (k->view == KEYS_FUNCTIONS) {
        snprintf(text, sizeof text, "functions of %s   Esc workers  ? help  q quit",
                 *k->worker ? k->worker : "the group");
        paint_line(1, A_NORMAL, text);
    } else {
        paint_line(1, A_NORMAL,
                   "Enter functions  < > sort  r reverse  d durations  ? help  q quit");
    }
}

static attr_t paint_row_tint(const struct table_row *r)
{
    if (!r->tint || strcmp(r->tint, "up") == 0)
        return A_NORMAL;
    return paint_tint(strcmp(r->tint, "lost") == 0 ? BAD : WARN);
}

static void paint_table(const struct keys_state *k, const struct view *v)
{
    char line[TABLE_LINE_MAX];
    struct table_layout l;

    table_lay_out(&v->table, COLS, &l);
    table_print_heading(&v->table, &l, k->sort[k->view], line);
    paint_line(2, A_BOLD | A_UNDERLINE, line);
    for (size_t i = k->first; i < v->table.n && PAINT_ABOVE + (int)(i - k->first) < LINES; i++) {
        const struct table_row *r = &v->table.row[i];

        table_print_row(&v->table, &l, r, line);
        paint_line(PAINT_ABOVE + (int)(i - k->first),
                   paint_row_tint(r) | (i == k->cursor ? A_REVERSE : 0), line);
    }
}

static void paint_help(void)
{
    static const char *const line[] = {
        "Keys",
        "  up, down, j, k, PgUp, PgDn, Home, End   move",
        "  Enter   functions of the worker under the cursor",
        "  f       functions of the group, or back to the workers",
        "  Esc     back to the workers",
        "  < >     sort by the column before or after (also left, right)",
        "  r       reverse the order",
        "  d       turn durations on, where that is permitted",
        "  q       quit",
        "Columns",
        "  MADE/s SERV/s  calls made and answered    C. S.  at caller and callee",
        "  ACTIVE  calls under way, of both sides    QUEUE  calls without a thread",
        "  BUSY BLOCK  threads of the pool           TIMEO LATE  of answers",
        "  POOL SHARED MAPPED  memory of the process REFS   references to its values",
        "  FAULTS  injected by the backend faulty    WAYS   transports, their peers",
    };

    for (int i = 0; i < (int)(sizeof line / sizeof line[0]); i++)
        paint_line(PAINT_ABOVE + i, A_NORMAL, line[i]);
}

void paint(const struct feed *f, struct keys_state *k, const struct view *v)
{
    erase();
    keys_scroll(k, v->table.n, LINES - PAINT_ABOVE);
    if (!f->has_now) {
        paint_line(0, A_NORMAL, "reading the group ...");
    } else {
        paint_title(f);
        paint_hint(f, k, v);
    }
    if (k->help)
        paint_help();
    else
        paint_table(k, v);
    refresh();
}
