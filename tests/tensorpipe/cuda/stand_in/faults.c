/* SPDX-License-Identifier: Apache-2.0 */
/* faults.c - which calls fail, what was counted, and what is said at the end. */
#include "stand_in.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CALLS_MAX 64
#define MISUSED 86 /* status at exit */

static struct {
    char name[48];
    unsigned calls;
    unsigned fails_at; /* the number of the call that fails; 0: none */
} counted[CALLS_MAX];
static unsigned n_counted;
static atomic_uint all_calls; /* but for those of the test */
static _Thread_local bool of_test;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int reports;

atomic_int live[LIVES];

long setting(const char *name, long other)
{
    const char *text = getenv(name);

    return text && *text ? strtol(text, NULL, 10) : other;
}

/* Under the lock. */
static unsigned entry(const char *name)
{
    unsigned i = 0;

    while (i < n_counted && strcmp(counted[i].name, name) != 0)
        i++;
    if (i == CALLS_MAX)
        abort();
    if (i == n_counted) {
        snprintf(counted[i].name, sizeof counted[i].name, "%s", name);
        n_counted++;
    }
    return i;
}

int fault(const char *call)
{
    unsigned i;
    bool fails;

    if (!of_test)
        atomic_fetch_add(&all_calls, 1);
    pthread_mutex_lock(&lock);
    i = entry(call);
    fails = ++counted[i].calls == counted[i].fails_at;
    pthread_mutex_unlock(&lock);
    if (!fails)
        return SUCCESS;
    return strcmp(call, "cuMemAlloc_v2") == 0 || strcmp(call, "cuMemHostAlloc") == 0 ? OUT_OF_MEMORY
                                                                                     : UNKNOWN;
}

void misuse(const char *fmt, ...)
{
    va_list ap;

    atomic_fetch_add(&reports, 1);
    va_start(ap, fmt);
    fprintf(stderr, "stand-in of CUDA, process %d: ", (int)getpid());
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
}

/* ---- for the tests ---- */

EXPORT int fake_cuda_fail(const char *call, unsigned nth);
EXPORT unsigned fake_cuda_calls(const char *call);
EXPORT unsigned fake_cuda_all_calls(void);
EXPORT void fake_cuda_of_test(bool is);
EXPORT int fake_cuda_reports(void);
EXPORT int fake_cuda_live(int what);

/* The nth call of that name from now on fails; 0: none does. Whether one still was
 * to fail. */
int fake_cuda_fail(const char *call, unsigned nth)
{
    unsigned i;
    bool waited;

    pthread_mutex_lock(&lock);
    i = entry(call);
    waited = counted[i].fails_at > counted[i].calls;
    counted[i].fails_at = nth ? counted[i].calls + nth : 0;
    pthread_mutex_unlock(&lock);
    return waited;
}

unsigned fake_cuda_calls(const char *call)
{
    unsigned n;

    pthread_mutex_lock(&lock);
    n = counted[entry(call)].calls;
    pthread_mutex_unlock(&lock);
    return n;
}

unsigned fake_cuda_all_calls(void)
{
    return atomic_load(&all_calls);
}

/* The calls of this thread are the test's own from now on, or not any more. */
void fake_cuda_of_test(bool is)
{
    of_test = is;
}

int fake_cuda_reports(void)
{
    return atomic_load(&reports);
}

int fake_cuda_live(int what)
{
    return what >= 0 && what < LIVES ? atomic_load(&live[what]) : -1;
}

__attribute__((constructor)) static void begin(void)
{
    char text[512], *rest = text, *one;

    snprintf(text, sizeof text, "%s", getenv("FAKE_CUDA_FAIL") ? getenv("FAKE_CUDA_FAIL") : "");
    while ((one = strsep(&rest, ",")) != NULL) {
        char *colon = strchr(one, ':');

        if (!colon)
            continue;
        *colon = '\0';
        fake_cuda_fail(one, (unsigned)strtoul(colon + 1, NULL, 10));
    }
}

__attribute__((destructor)) static void end(void)
{
    if (atomic_load(&reports) == 0)
        return;
    fflush(NULL);
    _exit(MISUSED);
}
