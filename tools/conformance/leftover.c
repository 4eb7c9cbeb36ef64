/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/case.h"

#include "conformance/expect.h"
#include "conformance/heap_use.h"
#include "core/base/clock.h"

#include <dirent.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIVES_BEFORE 4 /* caches of the plugin and of its libraries fill */
#define LOOKS 5
#define WINDOW 6      /* lives */
#define WINDOWS 4     /* more than a cache of the allocator grows in: 7 blocks of a size */
#define JOINED_PART 4 /* of the limit, until the kernel has removed a thread that was joined */

static int count_entries(const char *folder)
{
    DIR *d = opendir(folder);
    struct dirent *e;
    int n = 0;

    expect_here(d);
    while ((e = readdir(d)) != NULL)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static void *leftover_no_life(void *arg)
{
    return arg;
}

/* A sanitizer starts a thread of its own with the first one of a process. */
static void leftover_first_thread(void)
{
    pthread_t thread;

    expect_here(pthread_create(&thread, NULL, leftover_no_life, NULL) == 0);
    pthread_join(thread, NULL);
}

static struct leftover leftover_now(void)
{
    return (struct leftover){ .threads = count_entries("/proc/self/task"),
                              .fds = count_entries("/proc/self/fd") };
}

struct leftover leftover_count(void)
{
    struct leftover least, now;

    leftover_first_thread();
    least = leftover_now();
    for (int i = 0; i < LOOKS; i++) { /* a joined thread may still be seen */
        poll(NULL, 0, 1);
        now = leftover_now();
        least.threads = now.threads < least.threads ? now.threads : least.threads;
    }
    return least;
}

/* "tenrec-redis, worker" */
static void name_threads(char *text, size_t size)
{
    DIR *d = opendir("/proc/self/task");
    struct dirent *e;
    size_t at = 0;

    *text = '\0';
    while (d && (e = readdir(d)) != NULL && at < size) {
        char path[300], name[32] = "";
        FILE *f;

        if (e->d_name[0] == '.' || atoi(e->d_name) == getpid())
            continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", e->d_name);
        if ((f = fopen(path, "re")) != NULL) {
            if (fgets(name, sizeof name, f))
                name[strcspn(name, "\n")] = '\0';
            fclose(f);
        }
        at += (size_t)snprintf(text + at, size - at, "%s%s", at ? ", " : "", name);
    }
    if (d)
        closedir(d);
}

void leftover_expect_threads(struct leftover before)
{
    const uint64_t until_ns = clock_deadline_ms(expect_ms() / JOINED_PART);
    char text[300];
    int now;

    while ((now = leftover_now().threads) > before.threads && !clock_passed(until_ns))
        poll(NULL, 0, 1);
    if (now <= before.threads)
        return;
    name_threads(text, sizeof text);
    expect_fail("%d threads run after the end, %d ran before the start: %s", now, before.threads,
                text);
}

/* "/dev/null, socket:[8713]" of the descriptors above the standard ones. */
static void name_fds(char *text, size_t size)
{
    size_t at = 0;

    *text = '\0';
    for (int fd = 3; fd < 1024 && at < size; fd++) {
        char path[64], to[200];
        ssize_t n;

        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        n = readlink(path, to, sizeof to - 1);
        if (n > 0)
            at += (size_t)snprintf(text + at, size - at, "%s%.*s", at ? ", " : "", (int)n, to);
    }
}

void leftover_expect_fds(struct leftover before)
{
    const int now = leftover_now().fds;
    char text[600];

    if (now <= before.fds)
        return;
    name_fds(text, sizeof text);
    expect_fail("%d descriptors are open after the end, %d were before the start: %s", now,
                before.fds, text);
}

static void *leftover_live_here(void *arg)
{
    (*(void (**)(void))arg)();
    return NULL;
}

/* In a thread that ends, and gives back what allocators and the core keep for a thread. */
static void leftover_live(void (*life)(void))
{
    pthread_t thread;

    expect_here(pthread_create(&thread, NULL, leftover_live_here, &life) == 0);
    pthread_join(thread, NULL);
}

/* The least and the most that is in use after each of WINDOW lives. */
static void leftover_window(void (*life)(void), size_t *ret_least, size_t *ret_most)
{
    *ret_least = SIZE_MAX;
    *ret_most = 0;
    for (int i = 0; i < WINDOW; i++) {
        size_t now;

        leftover_live(life);
        now = heap_use();
        *ret_least = now < *ret_least ? now : *ret_least;
        *ret_most = now > *ret_most ? now : *ret_most;
    }
}

/* A cache grows for a while, or now and then; a leak grows in each window. */
void leftover_expect_memory(void (*life)(void))
{
    size_t first, before, least, most;

    for (int i = 0; i < LIVES_BEFORE; i++)
        leftover_live(life);
    leftover_window(life, &first, &before);
    for (int grown = 0; grown < WINDOWS; grown++) {
        leftover_window(life, &least, &most);
        if (least <= before)
            return;
        before = most;
    }
    expect_fail("memory in use grows with each life: %zu bytes in %d", before - first,
                WINDOWS * WINDOW);
}
