/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/recorder/reporter.h"

#include "core/base/clock.h"
#include "core/base/forks.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/base/threads.h"

#include <stdlib.h>

enum { QUEUED_MAX = 16, FINISH_MS = 5000 };

struct report_queue {
    struct report *first, **last;
    unsigned n; /* with the report that runs */
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t idle;
    struct report_queue queue[REPORT_KINDS];
    bool runs;
    bool has_ended;  /* the thread is to be joined */
    pthread_t ended; /* that runs, or is to be joined */
} reporter = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void queues_init(void)
{
    for (size_t i = 0; i < REPORT_KINDS; i++)
        reporter.queue[i] = (struct report_queue){ .last = &reporter.queue[i].first };
}

/* Takes a report of this process first. Returns NULL if none is queued. */
static struct report *queues_take(struct report_queue **ret_queue)
{
    for (size_t i = 0; i < REPORT_KINDS; i++) {
        struct report_queue *q = &reporter.queue[i];
        struct report *r = q->first;

        if (!r)
            continue;
        q->first = r->next;
        if (!q->first)
            q->last = &q->first;
        *ret_queue = q;
        return r;
    }
    return NULL;
}

/* The thread is the parent's. */
static void reporter_forked(void)
{
    pthread_mutex_init(&reporter.lock, NULL);
    clock_cond_init(&reporter.idle);
    queues_init();
    reporter.runs = reporter.has_ended = false;
}

static struct fork_hook fork_hook = { .child = reporter_forked };

static void reporter_init(void)
{
    queues_init();
    clock_cond_init(&reporter.idle);
    forks_follow(&fork_hook);
}

static void reporter_prepare(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, reporter_init);
}

static void *reporter_main(void *arg)
{
    struct report_queue *q;
    struct report *r;

    (void)arg;
    pthread_mutex_lock(&reporter.lock);
    while ((r = queues_take(&q))) {
        pthread_mutex_unlock(&reporter.lock);
        r->run(r);
        pthread_mutex_lock(&reporter.lock);
        q->n--;
    }
    reporter.runs = false;
    reporter.has_ended = true;
    pthread_cond_broadcast(&reporter.idle);
    pthread_mutex_unlock(&reporter.lock);
    return NULL;
}

/* Joins the thread that has exited. The caller holds the lock, which that thread has released. */
static void reporter_join(void)
{
    if (!reporter.has_ended)
        return;
    reporter.has_ended = false;
    pthread_join(reporter.ended, NULL);
}

tenrec_status reporter_run(struct report *r, enum report_kind kind, tenrec_error *err)
{
    struct report_queue *q = &reporter.queue[kind];
    tenrec_status st = TENREC_OK;

    reporter_prepare();
    r->next = NULL;
    pthread_mutex_lock(&reporter.lock);
    if (!reporter.runs) {
        reporter_join();
        reporter.runs = threads_start(&reporter.ended, "tenrec-report", reporter_main, NULL) == 0;
    }
    if (!reporter.runs)
        st = tenrec_fail(err, TENREC_EOS, "cannot start a thread for the dump");
    else if (q->n >= QUEUED_MAX)
        st = tenrec_fail(err, TENREC_EBUSY, "%d dumps are queued already", QUEUED_MAX);
    if (st == TENREC_OK) {
        *q->last = r;
        q->last = &r->next;
        q->n++;
    }
    pthread_mutex_unlock(&reporter.lock);
    return st;
}

void reporter_finish(void)
{
    const uint64_t until = clock_deadline_ms(FINISH_MS);

    reporter_prepare();
    pthread_mutex_lock(&reporter.lock);
    while (reporter.runs && clock_cond_wait(&reporter.idle, &reporter.lock, until))
        ;
    reporter_join();
    pthread_mutex_unlock(&reporter.lock);
}

/* ---- files ---------------------------------------------------------------------- */

struct file_report {
    struct report report; /* first */
    char *folder, *worker, *reason;
};

static void file_report_free(struct file_report *f)
{
    free(f->folder);
    free(f->worker);
    free(f->reason);
    free(f);
}

static void file_report_run(struct report *r)
{
    struct file_report *f = (struct file_report *)(void *)r;
    char path[DUMP_PATH_MAX];
    tenrec_error err;

    if (dump_file_write(f->folder, f->worker, path, &err) == TENREC_OK)
        log_line(TENREC_LOG_WARN, f->worker, "%s: wrote '%s'", f->reason, path);
    else
        log_line(TENREC_LOG_ERROR, f->worker, "%s: no dump: %s", f->reason, err.text);
    file_report_free(f);
}

void reporter_write(const char *folder, const char *worker, const char *reason)
{
    struct file_report *f;
    tenrec_error err;

    if (!dump_file_due(clock_now_ns()) || !(f = memory_new(1, sizeof *f)))
        return;
    *f = (struct file_report){
        { .run = file_report_run }, memory_text(folder), memory_text(worker), memory_text(reason)
    };
    if (f->folder && f->worker && f->reason &&
        reporter_run(&f->report, REPORT_OWN, &err) == TENREC_OK)
        return;
    log_line(TENREC_LOG_ERROR, worker, "%s: no dump: %s", reason,
             f->folder && f->worker && f->reason ? err.text : "out of memory");
    file_report_free(f);
}
