/* SPDX-License-Identifier: Apache-2.0 */
#include "top/print.h"

#include "base/clock.h"
#include "top/sample_json.h"
#include "top/view.h"

#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { WIDTH = 240 };

void print_title(const struct sample *before, const struct sample *now, int width, char *to,
                 size_t room)
{
    char text[1024], calls[16], at[16];
    const time_t second = (time_t)now->time;
    struct tm tm;

    localtime_r(&second, &tm);
    strftime(at, sizeof at, "%H:%M:%S", &tm);
    table_number(calls, TABLE_RATE, view_total(before, now));
    snprintf(text, sizeof text, "group \"%s\"  %zu member%s  %s calls/s  %s  %s", now->group,
             now->n, now->n == 1 ? "" : "s", calls, at, now->store);
    table_fit(to, room, text, width, false);
}

static void print_strip(char *line)
{
    size_t n = strlen(line);

    while (n && line[n - 1] == ' ')
        line[--n] = '\0';
}

static void print_table(const struct sample *before, const struct sample *now, const char *sort)
{
    char line[TABLE_LINE_MAX];
    struct table_layout layout;
    bool untimed = false;
    struct view v;
    int by;

    print_title(before, now, WIDTH, line, sizeof line);
    print_strip(line);
    printf("%s\n", line);
    if (*now->error) {
        table_fit(line, sizeof line, now->error, WIDTH, false);
        print_strip(line);
        printf("store: %s\n", line);
    }
    view_workers(before, now, &v);
    by = table_column_find(&v.table, sort);
    table_sort(&v.table, by, false);
    table_lay_out(&v.table, WIDTH, &layout);
    table_print_heading(&v.table, &layout, by, line);
    print_strip(line);
    printf("%s\n", line);
    for (size_t i = 0; i < v.table.n; i++) {
        const struct sample_worker *w = v.table.row[i].of;

        untimed |= w->reading.answered && !w->reading.timed;
        table_print_row(&v.table, &layout, &v.table.row[i], line);
        print_strip(line);
        printf("%s\n", line);
    }
    view_finish(&v);
    if (untimed)
        printf("no durations: tenrec set WORKER observe.durations=true turns them on\n");
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
            (void)sample_json_print(&before, &now); /* main reports a failure */
        else
            print_table(&before, &now, o->sort);
        sample_finish(&before);
        before = now;
        now = (struct sample){ .n = 0 };
        if (fflush(stdout))
            break; /* main reports the failure */
    }
    sample_finish(&before);
    return st == TENREC_OK ? TOOL_OK : tool_fail(self, "%s", err.text);
}
