/* SPDX-License-Identifier: Apache-2.0 */
/* actor.c - one worker of a soak (soak.py).
 *
 *     actor LEDGER SEED SLOT LIFE CALLERS LARGE
 *     actor --store
 *
 * Joins its group, prints "ready NAME ID", and calls the others. Orders on stdin, one
 * per line:
 *
 *     pause, resume        its own calls; "ok" when none is in flight, or at once
 *     stats                "ok KEY=NUMBER ..."
 *     gather VALUE NAME... "ok", or "fail CODE TEXT"
 *     leave                in good order: "ok", or "fail CODE TEXT"; ends
 *
 * Prints "removed" when the group has removed it. --store serves a store, prints its
 * port and ends with stdin.
 */
#include <tenrec/store.h>

#include "../support/debug_info.h"
#include "conformance/heap_use.h"
#include "ledger.h"
#include "work.h"

#include <dirent.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdlib.h>
#include <unistd.h>

enum { CALLERS_MAX = 16, LEAVE_MS = 15000, GATHER_MS = 5000, WORDS_MAX = 64 };

static struct tenrec_worker *worker;
static struct caller *caller[CALLERS_MAX];
static int n_callers;

TENREC_PRINTF(1, 2)
static void say(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    putchar('\n');
    fflush(stdout);
}

static int say_result(tenrec_status st, const tenrec_error *err)
{
    if (st == TENREC_OK)
        say("ok");
    else
        say("fail %s %s", tenrec_status_name(st), err->text);
    return st != TENREC_OK;
}

/* ---- what it has ------------------------------------------------------------ */

static int count_files(const char *path)
{
    DIR *d = opendir(path);
    int n = -3; /* ".", "..", and the folder itself */

    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

static long resident_kb(void)
{
    FILE *f = fopen("/proc/self/statm", "re");
    long pages = 0;

    if (f) {
        if (fscanf(f, "%*d %ld", &pages) != 1)
            pages = 0;
        fclose(f);
    }
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void on_info(void *arg, const char *key, const char *value)
{
    static const char *const wanted[] = { "rref.",  "calls.",  "agent.",  "memory.",
                                          "group.", "region.", "weights." };

    (void)arg;
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        if (strncmp(key, wanted[i], strlen(wanted[i])) == 0 && *value >= '0' && *value <= '9')
            printf(" %s=%s", key, value);
}

static void tell_stats(void)
{
#ifdef __GLIBC__
    malloc_trim(0);
#endif
    printf("ok fds=%d threads=%d rss_kb=%ld heap_kb=%zu", count_files("/proc/self/fd"),
           count_files("/proc/self/task") + 1, resident_kb(), heap_use() / 1024);
    debug_info_each(worker, on_info, NULL);
    say("%s", "");
}

/* ---- its life ----------------------------------------------------------------- */

static int serve_store(void)
{
    struct tenrec_store_server *server;
    tenrec_error err;
    uint16_t port;
    char buf[64];

    if (tenrec_store_server_new("127.0.0.1", 0, &server, &port, &err) != TENREC_OK) {
        fprintf(stderr, "actor: %s\n", err.text);
        return 1;
    }
    say("%u", (unsigned)port);
    while (read(0, buf, sizeof buf) > 0)
        ;
    tenrec_store_server_drop(server);
    return 0;
}

static tenrec_status join(tenrec_error *err)
{
    tenrec_status st = tenrec_worker_new(NULL, &worker, err);

    if (st == TENREC_OK)
        st = work_register(worker, err);
    if (st == TENREC_OK)
        st = leases_register(worker, err);
    return st == TENREC_OK ? tenrec_init_rpc(worker, err) : st;
}

static void gather(char **word, size_t n)
{
    tenrec_error err;

    if (n < 2) {
        say("fail EINVAL gather VALUE NAME...");
        return;
    }
    say_result(work_gather(worker, (const char *const *)word + 1, n - 1, strtoll(word[0], NULL, 10),
                           GATHER_MS, &err),
               &err);
}

static int leave(void)
{
    tenrec_error err = { .code = TENREC_OK };
    tenrec_status st;
    int rc;

    /* The makers of calls first, so that revokes find few. */
    while (n_callers > 0)
        caller_stop(caller[--n_callers]);
    st = tenrec_shutdown(worker, TENREC_GRACEFUL, LEAVE_MS, &err);
    rc = say_result(st, &err);
    tenrec_worker_drop(worker);
    return rc;
}

static void obey(char *line)
{
    char *word[WORDS_MAX], *save = NULL;
    size_t n = 0;

    for (char *w = strtok_r(line, " \n", &save); w && n < WORDS_MAX;
         w = strtok_r(NULL, " \n", &save))
        word[n++] = w;
    if (n == 0)
        return;
    if (strcmp(word[0], "leave") == 0) {
        exit(leave());
    } else if (strcmp(word[0], "stats") == 0) {
        tell_stats();
    } else if (strcmp(word[0], "gather") == 0) {
        gather(word + 1, n - 1);
    } else if (strcmp(word[0], "pause") == 0 || strcmp(word[0], "resume") == 0) {
        for (int i = n_callers - 1; i >= 0; i--)
            (word[0][0] == 'p' ? caller_pause : caller_resume)(caller[i]);
        say("ok");
    } else {
        say("fail EINVAL no such order");
    }
}

static void start(const struct caller_job *job, uint64_t seed, int64_t large)
{
    if (n_callers < CALLERS_MAX && !(caller[n_callers++] = caller_start(worker, job, seed, large)))
        exit(3);
}

int main(int argc, char **argv)
{
    struct tenrec_worker_info me;
    tenrec_error err;
    char line[4096];
    unsigned slot, life;
    uint64_t seed, own;

    if (argc == 2 && strcmp(argv[1], "--store") == 0)
        return serve_store();
    if (argc != 7) {
        fprintf(stderr, "usage: actor LEDGER SEED SLOT LIFE CALLERS LARGE\n");
        return 2;
    }
    seed = strtoull(argv[2], NULL, 10);
    slot = (unsigned)strtoul(argv[3], NULL, 10);
    life = (unsigned)strtoul(argv[4], NULL, 10);
    ledger_open(argv[1]);
    ledger_name(slot, life);
    if (join(&err) != TENREC_OK || tenrec_get_worker_info(worker, NULL, &me, &err) != TENREC_OK) {
        say("fail %s %s", tenrec_status_name(err.code), err.text);
        tenrec_worker_drop(worker);
        return 1;
    }
    say("ready %s %d", me.name, me.id);
    own = seed + slot * 1000003u + life * 7919u;
    start(&versions_job, own, 0);
    start(&offers_job, own + 1, 0);
    for (int i = 0; i < atoi(argv[5]); i++)
        start(&calls_job, own + 2 + (uint64_t)i, strtoll(argv[6], NULL, 10));
    while (fgets(line, sizeof line, stdin))
        obey(line);
    /* The sender of the orders is gone. */
    _exit(4);
}
