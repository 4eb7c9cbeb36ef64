/* SPDX-License-Identifier: Apache-2.0 */
/* limits.c - one of two workers, started by bench/limits: the watcher measures how late an
 * operation ends after its limit while the other worker is stopped or dead.
 *
 *     limits OPERATION LIMIT_MS WATCHER HOW
 *
 * OPERATION is barrier or shutdown, WATCHER the rank that measures, HOW the state of the
 * other worker: stop, die or stay. */
#include "samples.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenrec/tenrec.h>
#include <unistd.h>

enum { SETTLE_MS = 300, OTHER_MS = 10000 };

static int give_up(const tenrec_error *err)
{
    fprintf(stderr, "limits: %s\n", err->text);
    return 1;
}

static int suffer(const char *how)
{
    poll(NULL, 0, SETTLE_MS / 3); /* the other worker receives the last answers */
    if (strcmp(how, "die") == 0)
        _exit(0);
    if (strcmp(how, "stop") == 0)
        raise(SIGSTOP);
    poll(NULL, 0, OTHER_MS);
    return 0;
}

static tenrec_status operate(struct tenrec_worker *w, const char *what, int64_t ms,
                             tenrec_error *err)
{
    if (strcmp(what, "barrier") == 0)
        return tenrec_worker_barrier(w, NULL, 0, ms, err);
    return tenrec_shutdown(w, TENREC_GRACEFUL, ms, err);
}

int main(int argc, char **argv)
{
    const char *rank = getenv("RANK");
    struct tenrec_worker *w = NULL;
    tenrec_status st;
    uint64_t begin;
    int64_t limit;
    tenrec_error err;

    if (argc != 5 || !rank)
        return 2;
    limit = atoll(argv[2]);
    if (tenrec_worker_new(NULL, &w, &err) || tenrec_init_rpc(w, &err) ||
        tenrec_group_wait_members(w, 2, OTHER_MS, &err) ||
        tenrec_worker_barrier(w, NULL, 0, OTHER_MS, &err))
        return give_up(&err);
    if (strcmp(rank, argv[3]) != 0)
        return suffer(argv[4]);
    poll(NULL, 0, SETTLE_MS); /* the other worker stops or dies */
    begin = samples_now_ns();
    st = operate(w, argv[1], limit, &err);
    printf("{\"ms\": %.3f, \"status\": \"%s\"}\n", (double)(samples_now_ns() - begin) / 1e6,
           tenrec_status_name(st));
    fflush(stdout);
    _exit(0);
}
