/* SPDX-License-Identifier: Apache-2.0 */
#include "core/base/clock_fast.h"

#include "core/base/clock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define SOURCE "/sys/devices/system/clocksource/clocksource0/current_clocksource"

enum {
    CALIBRATE_NS = 1000000, /* the first baseline: the frequency is known to a ten-thousandth */
    HOLDS_NS = 4000000,     /* an anchor, before it is read again */
    READINGS = 4,           /* the best of these: a thread may lose the processor in between */
};

_Thread_local struct clock_fast clock_fast_anchor;

/* The first reading of the process, to which later ones are compared: the longer the baseline, the
 * better the frequency. */
static struct {
    pthread_once_t once;
    bool usable;
    uint64_t counter, ns;
} first = { .once = PTHREAD_ONCE_INIT };

/* Other clock sources say that the kernel found the counter unfit, or that a hypervisor scales it.
 */
static bool counter_is_clock(void)
{
#if defined(__x86_64__)
    char name[16] = "";
    FILE *f = fopen(SOURCE, "re");
    const bool is = f && fgets(name, sizeof name, f) && strcmp(name, "tsc\n") == 0;

    if (f)
        fclose(f);
    return is;
#elif defined(__aarch64__)
    return true;
#else
    return false;
#endif
}

/* Reads both at one moment. */
static void clock_fast_read(uint64_t *ret_counter, uint64_t *ret_ns)
{
    uint64_t least = UINT64_MAX;

    for (int i = 0; i < READINGS; i++) {
        const uint64_t before = CLOCK_FAST_COUNTER(), ns = clock_now_ns(),
                       took = CLOCK_FAST_COUNTER() - before;

        if (took < least) {
            least = took;
            *ret_counter = before + took / 2;
            *ret_ns = ns;
        }
    }
}

static void clock_fast_begin(void)
{
    first.usable = counter_is_clock();
    clock_fast_read(&first.counter, &first.ns);
}

uint64_t clock_fast_anew(void)
{
    struct clock_fast *a = &clock_fast_anchor;
    uint64_t ns, counter = 0;

    pthread_once(&first.once, clock_fast_begin);
    ns = clock_now_ns();
    if (!first.usable || ns - first.ns < CALIBRATE_NS)
        return ns;
    clock_fast_read(&counter, &ns);
    if (counter <= first.counter)
        return ns;
    *a = (struct clock_fast){
        .counter = counter,
        .ns = ns,
        .scale = (uint64_t)((double)(ns - first.ns) / (double)(counter - first.counter) * 0x1p32),
    };
    a->span = a->scale ? (uint64_t)((double)HOLDS_NS * 0x1p32 / (double)a->scale) : 0;
    return ns;
}
