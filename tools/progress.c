/* SPDX-License-Identifier: Apache-2.0 */
#include "tool.h"

#include "core/base/clock.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { FIRST_MS = 1000, AGAIN_MS = 500 };

static uint64_t progress_ms(const struct progress *p)
{
    return (clock_now_ns() - p->begin_ns) / 1000000;
}

static void progress_write(const struct progress *p, const char *text, size_t n)
{
    (void)!write(p->fd, text, n); /* a line less on a terminal that is gone */
}

void progress_show(struct progress *p, const char *text)
{
    char line[300];
    int n;

    if (p->fd < 0 || (!text && !p->shown) || (text && progress_ms(p) < FIRST_MS))
        return;
    n = snprintf(line, sizeof line, "\r\033[K%.200s%s", text ? text : "", text ? "" : "\r");
    progress_write(p, line, (size_t)n);
    p->shown = text != NULL;
}

static void progress_print(struct progress *p)
{
    char line[200], far[100] = "";
    const unsigned long long s = progress_ms(p) / 1000;
    int n;

    if (p->how_far)
        p->how_far(p->arg, far, sizeof far);
    n = snprintf(line, sizeof line, "tenrec %s: %s%s%s, %llu", p->name, p->what, *far ? ": " : "",
                 far, s);
    if (n > 0 && n < (int)sizeof line - 40)
        p->limit_ms ? snprintf(line + n, sizeof line - (size_t)n, " of %llu s",
                               (unsigned long long)(p->limit_ms + 999) / 1000)
                    : snprintf(line + n, sizeof line - (size_t)n, " s");
    progress_show(p, line);
}

static void *progress_main(void *arg)
{
    struct progress *p = arg;
    uint64_t next = clock_deadline_ms(FIRST_MS);

    pthread_mutex_lock(&p->lock);
    while (!p->stop) {
        if (clock_passed(next)) {
            progress_print(p);
            next = clock_deadline_ms(AGAIN_MS);
        }
        clock_cond_wait(&p->changed, &p->lock, next);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

void progress_begin(struct progress *p, int fd, const char *name, const char *what,
                    uint64_t limit_ms, progress_fn *how_far, void *arg)
{
    *p = (struct progress){ .fd = isatty(fd) == 1 ? fd : -1,
                            .name = name,
                            .what = what,
                            .limit_ms = limit_ms,
                            .how_far = how_far,
                            .arg = arg,
                            .begin_ns = clock_now_ns() };
    if (p->fd < 0)
        return;
    pthread_mutex_init(&p->lock, NULL);
    clock_cond_init(&p->changed);
    if (pthread_create(&p->thread, NULL, progress_main, p)) {
        pthread_cond_destroy(&p->changed);
        pthread_mutex_destroy(&p->lock);
        p->fd = -1;
    }
}

void progress_end(struct progress *p)
{
    if (p->fd < 0)
        return;
    pthread_mutex_lock(&p->lock);
    p->stop = true;
    pthread_cond_signal(&p->changed);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    progress_show(p, NULL);
}
