/* SPDX-License-Identifier: Apache-2.0 */
#include "testkit/report.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "testkit/process.h"

enum { SHOWN_MAX = 8192, QUOTED_MAX = 240 };

static void report_note(struct member *m, tenrec_status status, const char *text)
{
    m->noted = tenrec_fail(&m->note, status, "%s", text);
    board_fail(m->board, m->test.rank);
}

void report_crash(struct member *m)
{
    const struct record *r = member_record(m);
    bool said = atomic_load(&r->phase) == RECORD_ENDED;
    char how[80], text[160];

    if (!m->pid || !m->reaped || m->noted != TENREC_OK || atomic_load(&r->may_die))
        return;
    if (said && (m->exit == 0 || r->status != TENREC_OK))
        return;
    process_how(m, how, sizeof how);
    snprintf(text, sizeof text, "%s %s", how, record_place(r));
    report_note(m, TENREC_EPEER_LOST, text);
}

void report_hang(struct member *m, bool others_failed)
{
    char text[160];

    snprintf(text, sizeof text, "hangs %s%s", record_place(member_record(m)),
             others_failed ? ", after another worker has failed" : "");
    report_note(m, TENREC_ETIMEDOUT, text);
}

/* Returns why a member failed, or NULL. */
static const tenrec_error *report_why(const struct member *m)
{
    const struct record *r = member_record(m);

    if (m->noted != TENREC_OK)
        return &m->note;
    if (atomic_load(&r->phase) != RECORD_ENDED || r->status == TENREC_OK)
        return NULL;
    return &r->err;
}

void report_all(const struct member *member, int32_t n)
{
    static const char *const line = "----------------";
    char output[SHOWN_MAX];
    bool any = false;

    for (int32_t i = 0; i < n; i++) {
        const tenrec_error *e = report_why(&member[i]);
        if (e)
            fprintf(stderr, "%s: %s: %s\n", member[i].name, tenrec_status_name(e->code), e->text);
        any = any || e;
    }
    for (int32_t i = 0; i < n && any; i++) {
        if (!member[i].pid)
            continue;
        process_output(&member[i], output, sizeof output);
        if (*output)
            fprintf(stderr, "%s last output of %s\n%s%s%s\n", line, member[i].name, output,
                    output[strlen(output) - 1] == '\n' ? "" : "\n", line);
    }
}

/* Appends the last output of a process to *err, on one line. */
static void report_quote(const struct member *m, tenrec_error *err)
{
    char output[QUOTED_MAX + 1], *start = output;
    size_t n = strlen(err->text), end;

    process_output(m, output, sizeof output);
    for (end = strlen(output); end > 0 && strchr(" \n\r", output[end - 1]); end--)
        output[end - 1] = '\0';
    if (end + 1 >= QUOTED_MAX && strchr(output, '\n'))
        start = strchr(output, '\n') + 1; /* not half of a line */
    if (!*start)
        return;
    for (char *p = start; *p; p++)
        if (*p == '\n')
            *p = '|';
    snprintf(err->text + n, sizeof err->text - n, "; it printed: %s", start);
}

tenrec_status report_first(const struct member *member, const struct board *b, tenrec_error *err)
{
    int first = atomic_load(&b->failed);
    const struct member *m;
    const tenrec_error *e;

    if (first == 0 || first > b->n)
        return TENREC_OK;
    m = &member[first - 1];
    e = report_why(m);
    if (!e)
        return tenrec_fail(err, TENREC_ETIMEDOUT, "%s: failed and hangs", m->name);
    *err = *e;
    if (m->pid && (m->noted != TENREC_OK || atomic_load(&member_record(m)->asserted)))
        report_quote(m, err);
    else if (atomic_load(&member_record(m)->asserted))
        tenrec_fail(err, e->code, "%s: see its text on stderr", e->text);
    tenrec_error_prefix(err, "%s", m->name);
    err->worker = m->test.rank;
    snprintf(err->worker_name, sizeof err->worker_name, "%s", m->name);
    return err->code;
}
