/* SPDX-License-Identifier: Apache-2.0 */
/* store_wait.c - waiters wake, hold up nothing, and end at their deadline. */
#include "conformance/store/store_clients.h"

#include "core/base/clock.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <tenrec/future.h>
#include <unistd.h>

#define AWAKE_MS 1000 /* from a change to the return of its waiter */

struct waiter {
    struct tenrec_store *s;
    const char *key;
    uint64_t deadline_ns;
    pthread_t thread;
    atomic_int tid;
    _Atomic uint64_t ended_ns;
};

static void *waiter_run(void *arg)
{
    struct waiter *w = arg;
    tenrec_error err;

    atomic_store(&w->tid, (int)syscall(SYS_gettid));
    expect_ok(store_get_all(w->s, &w->key, 1, w->deadline_ns, NULL, NULL, &err), &err, "get");
    atomic_store(&w->ended_ns, clock_now_ns());
    return NULL;
}

/* The thread waits for something: it is not on a processor. */
static bool is_asleep(int tid)
{
    char path[64], text[256] = "";
    const char *state;
    FILE *f;

    snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
    if (!(f = fopen(path, "re")))
        return true;
    if (!fgets(text, sizeof text, f))
        text[0] = '\0';
    fclose(f);
    state = strrchr(text, ')');
    return !state || state[2] == 'S';
}

/* Starts it, and lets it fall asleep; a store that never sleeps while it waits breaks another
 * rule, so that this is no demand. */
static void waiter_start(struct waiter *w)
{
    int asleep = 0;

    clients_need(TENREC_STORE_LACKS_WATCH, "a watch of keys");
    expect_here(pthread_create(&w->thread, NULL, waiter_run, w) == 0);
    expect_becomes(atomic_load(&w->tid) != 0, "the waiting thread has not begun");
    for (int i = 0; i < 200 && asleep < 5; i++) {
        asleep = is_asleep(atomic_load(&w->tid)) ? asleep + 1 : 0;
        poll(NULL, 0, 1);
    }
}

static void waiter_wakes(struct waiter *w, uint64_t changed_ns)
{
    uint64_t ended_ns, ms;

    pthread_join(w->thread, NULL);
    ended_ns = atomic_load(&w->ended_ns);
    if (ended_ns >= w->deadline_ns)
        expect_fail("a waiter wakes at its deadline only, not by the change");
    ms = ended_ns > changed_ns ? (ended_ns - changed_ns) / 1000000 : 0;
    if (ms > expect_slow(AWAKE_MS))
        expect_fail("a waiter wakes %" PRIu64 " ms after the change", ms);
}

/* One waiter of each client. */
static void waiters_wake_by(void (*change)(struct tenrec_store *s, const char *key))
{
    struct waiter same = { .s = one, .key = "late", .deadline_ns = soon() },
                  other = { .s = two, .key = "late", .deadline_ns = TENREC_STORE_NEVER };
    uint64_t changed_ns;

    clients_note("late");
    waiter_start(&same);
    waiter_start(&other);
    change(one, "late");
    changed_ns = clock_now_ns();
    waiter_wakes(&same, changed_ns);
    waiter_wakes(&other, changed_ns);
}

static void by_set(struct tenrec_store *s, const char *key)
{
    put(s, key, "v");
}

static void by_add(struct tenrec_store *s, const char *key)
{
    add(s, key, 1);
}

static void by_compare_set(struct tenrec_store *s, const char *key)
{
    char *now;
    tenrec_error err;

    expect_ok(store_swap_text(s, key, "", "v", soon(), &now, &err), &err, "compare_set");
    free(now);
}

STORE_CASE(set_wakes_the_waiters, "ST-8")
{
    waiters_wake_by(by_set);
}

STORE_CASE(add_wakes_the_waiters, "ST-9")
{
    waiters_wake_by(by_add);
}

STORE_CASE(compare_set_wakes_the_waiters, "ST-10")
{
    waiters_wake_by(by_compare_set);
}

STORE_CASE(get_waits_for_the_last_of_its_keys, "ST-11")
{
    const char *keys[] = { "k1", "k2" };
    struct waiter first = { .s = one, .key = "k2", .deadline_ns = soon() };
    bool missing[2];
    tenrec_error err;

    put(two, "k1", "");
    waiter_start(&first);
    expect_error(get_by(two, keys, 2, 20, NULL, missing, &err), TENREC_ETIMEDOUT, &err, "get");
    put(two, "k2", "");
    waiter_wakes(&first, clock_now_ns());
    expect_ok(store_get_all(two, keys, 2, soon(), NULL, missing, &err), &err, "get");
}

/* All through the handle on which a thread waits. */
STORE_CASE(a_waiting_operation_blocks_no_other, "ST-3")
{
    struct waiter w = { .s = one, .key = "late", .deadline_ns = soon() };
    const char *key = "other";
    int64_t n;
    tenrec_error err;

    clients_need(TENREC_STORE_LACKS_COMPARE, "add and compare_set");
    waiter_start(&w);
    for (int i = 0; i < 20; i++) {
        put(one, "other", "v");
        holds(one, "other", "v");
        add(one, "number", 1);
        by_compare_set(one, "other");
        expect(has(one, "other"), "check reports that a key is missing that was set");
        expect_ok(store_num_keys(one, soon(), &n, &err), &err, "num_keys");
        expect_ok(store_remove_all(one, &key, 1, soon(), NULL, &err), &err, "remove");
        if (atomic_load(&w.ended_ns))
            expect_fail("the waiter has ended: the operations waited for it");
    }
    put(one, "late", "v");
    pthread_join(w.thread, NULL);
}

/* ---- many threads ---- */

enum { THREADS = 8, TIMES = 50 };

struct client {
    struct tenrec_store *s;
    int number;
};

static void *client_run(void *arg)
{
    const struct client *k = arg;
    char key[24], value[24];
    tenrec_error err;

    snprintf(key, sizeof key, "own%d", k->number);
    for (int i = 0; i < TIMES; i++) {
        snprintf(value, sizeof value, "%d.%d", k->number, i);
        put(k->s, key, value);
        add(k->s, "sum", 1);
        holds(k->s, key, value);
        if (i % 10 == 9) {
            const char *one_key = key;

            expect_ok(store_remove_all(k->s, &one_key, 1, soon(), NULL, &err), &err, "remove");
        }
    }
    return NULL;
}

STORE_CASE(many_threads_lose_nothing, "ST-3")
{
    struct client k[THREADS];
    pthread_t thread[THREADS];

    for (int i = 0; i < THREADS; i++) {
        k[i] = (struct client){ i % 2 ? one : two, i };
        expect_here(pthread_create(&thread[i], NULL, client_run, &k[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    expect_equal(add(one, "sum", 0), THREADS * TIMES, "the sum of the adds of all threads");
}

/* ---- deadlines ---- */

/* A machine may be late itself: each wait has a few attempts. */
STORE_CASE(get_ends_at_its_deadline, "ST-4")
{
    enum { ATTEMPTS = 4, LATE_MS = 100 };
    static const unsigned limit_ms[] = { 0, 30, 250 };
    const uint64_t until_ns = soon();
    const char *key = "nobody";
    tenrec_error err;

    for (size_t i = 0; i < sizeof limit_ms / sizeof *limit_ms; i++) {
        uint64_t late_ms = UINT64_MAX;

        for (int k = 0; k < ATTEMPTS && late_ms > LATE_MS; k++) {
            uint64_t deadline_ns, now_ns;
            tenrec_status st;

            do {
                deadline_ns = clock_deadline_ms(limit_ms[i]);
                st = store_get_all(one, &key, 1, deadline_ns, NULL, NULL, &err);
                now_ns = clock_now_ns();
            } while (server_was_late(st, until_ns));
            expect_error(st, TENREC_ETIMEDOUT, &err, "get");
            if (now_ns < deadline_ns)
                expect_fail("get ends %" PRIu64 " us before its deadline",
                            (deadline_ns - now_ns) / 1000);
            late_ms = (now_ns - deadline_ns) / 1000000;
        }
        if (late_ms > expect_slow(LATE_MS))
            expect_fail("get ends %" PRIu64 " ms after its deadline, at most %d are allowed",
                        late_ms, LATE_MS);
    }
}
