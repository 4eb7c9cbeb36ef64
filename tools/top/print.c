/* SPDX-License-Identifier: Apache-2.0 */
#include "top/view.h"

#include "core/base/clock.h"

#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { WIDTH = 240 };

/* A line that is no longer than `width` columns, and has no blanks at its end. */
static void print_line(const char *text, int width)
{
    char line[TABLE_LINE_MAX];
    size_t n;

    table_fit(line, sizeof line, text, width, false);
    n = strlen(line);
    while (n && line[n - 1] == ' ')
        n--;
    printf("%.*s\n", (int)n, line);
}

static void print_title(const struct sample *before, const struct sample *now, int width)
{
    char text[1024], calls[16], at[16];
    const time_t second = (time_t)now->time;
    struct tm tm;

    localtime_r(&second, &tm);
    strftime(at, sizeof at, "%H:%M:%S", &tm);
    table_number(calls, TABLE_RATE, view_total(before, now));
    snprintf(text, sizeof text, "group \"%s\"  %zu member%s  %s calls/s  %s  %s", now->group,
             now->n, now->n == 1 ? "" : "s", calls, at, now->store);
    print_line(text, width);
    if (*now->error) {
        snprintf(text, sizeof text, "store does not answer, retrying: %s", now->error);
        print_line(text, width);
    }
}

static void print_rows(const struct view *v, int by, int width)
{
    struct table_layout layout;
    char line[TABLE_LINE_MAX];

    table_lay_out(&v->table, width, &layout);
    table_print_heading(&v->table, &layout, by, line);
    print_line(line, width);
    for (size_t i = 0; i < v->table.n; i++) {
        table_print_row(&v->table, &layout, &v->table.row[i], line);
        print_line(line, width);
    }
}

/* Below the table: the reasons for workers that are not up. */
static void print_notes(const struct sample *now, int width)
{
    bool untimed = false;

    for (size_t i = 0; i < now->n; i++) {
        const struct sample_worker *w = &now->worker[i];
        char text[512];

        untimed |= w->reading.answered && !w->reading.timed;
        snprintf(text, sizeof text, "%s is %s: %s", w->name, sample_state_name(w->state), w->why);
        if (*w->why)
            print_line(text, width);
    }
    if (untimed)
        printf("no durations: observe.durations is false in a worker\n");
}

/* As wide as the terminal. */
static int print_width(void)
{
    struct winsize size;

    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : WIDTH;
}

static void print_table(const struct sample *before, const struct sample *now,
                        const struct print_options *o)
{
    const int width = print_width();
    struct view v;
    int by;

    if (o->samples != 1 && isatty(STDOUT_FILENO))
        printf("\033[H\033[2J"); /* the latest table only */
    print_title(before, now, width);
    by = table_column_find(&view_workers_columns, o->sort);
    if (o->by_host)
        view_hosts(before, now, by, &v);
    else
        view_workers(before, now, &v);
    table_sort(&v.table, by);
    print_rows(&v, by, width);
    view_finish(&v);
    print_notes(now, width);
}

static void wait_until(uint64_t ns)
{
    struct timespec left;

    while (!clock_passed(ns)) {
        const int ms = clock_left_ms(ns);

        left = (struct timespec){ ms / 1000, (long)(ms % 1000) * 1000000 };
        nanosleep(&left, NULL);
    }
}

int print_samples(const struct tool *self, struct sampler *s, const struct print_options *o)
{
    struct sample before, now = { .n = 0 };
    uint64_t next = clock_deadline_ms(s->interval_ms);
    tenrec_error err;
    tenrec_status st;

    setlocale(LC_CTYPE, "C.UTF-8");
    st = sampler_take(s, &before, &err);
    for (int i = 0; st == TENREC_OK && (o->samples == 0 || i < o->samples); i++) {
        wait_until(next);
        next = clock_deadline_ms(s->interval_ms);
        st = sampler_take(s, &now, &err);
        if (st != TENREC_OK)
            break;
        if (o->as_json)
            sample_json_print(&before, &now);
        else
            print_table(&before, &now, o);
        sample_finish(&before);
        before = now;
        now = (struct sample){ .n = 0 };
        if (fflush(stdout))
            break; /* main reports the failure */
    }
    sample_finish(&before);
    return st == TENREC_OK ? TOOL_OK : tool_fail(self, "%s", err.text);
}
