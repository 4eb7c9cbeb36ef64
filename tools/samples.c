/* SPDX-License-Identifier: Apache-2.0 */
#include "samples.h"

#include <stdlib.h>
#include <time.h>

int samples_init(struct samples *s, size_t room)
{
    s->n = 0;
    s->room = room;
    s->ns = calloc(room ? room : 1, sizeof *s->ns);
    return s->ns ? 0 : -1;
}

void samples_finish(struct samples *s)
{
    free(s->ns);
    s->ns = NULL;
    s->n = s->room = 0;
}

void samples_add(struct samples *s, uint64_t ns)
{
    if (s->n < s->room)
        s->ns[s->n++] = ns;
}

static int by_time(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

double samples_us(struct samples *s, double part)
{
    size_t at;

    if (!s->n)
        return 0;
    qsort(s->ns, s->n, sizeof *s->ns, by_time);
    at = (size_t)((double)s->n * part);
    if (at >= s->n)
        at = s->n - 1;
    return (double)s->ns[at] / 1e3;
}

uint64_t samples_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
