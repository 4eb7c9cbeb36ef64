/* SPDX-License-Identifier: Apache-2.0 */
/* rest.c - two idle workers. Each is a program of its own, as a user's would be, and
 * holds no pages of its parent. */
#include "measure.h"
#include "modes.h"
#include "side.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define MANY 5000 /* calls before the rest */

struct resting {
    const struct side *side;
    int rank, ready_fd;
};

static int run(void *arg)
{
    const struct resting *r = arg;
    char rank[16], fd[16];

    snprintf(rank, sizeof rank, "%d", r->rank);
    snprintf(fd, sizeof fd, "%d", r->ready_fd);
    execl("/proc/self/exe", "tenrec_bench", "rest", r->side->store, r->side->via, rank, fd,
          (char *)NULL);
    pair_die("exec");
}

static void call_often(struct measure *m)
{
    tenrec_error err;
    struct samples times = { 0 };

    m->calls = MANY;
    if (measure_latency(m, &times, &err))
        side_give_up(&err);
}

int rest_exec(char **argv)
{
    struct side s = { .progress = "adaptive", .world = 2 };
    int rank = atoi(argv[2]);
    struct measure_callee callee;
    struct measure m = { .to = "w1" };
    tenrec_error err;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    snprintf(s.store, sizeof s.store, "%s", argv[0]);
    snprintf(s.via, sizeof s.via, "%s", argv[1]);
    m.worker = side_worker(&s, rank);
    if (measure_callee_init(&callee, m.worker, 64, TENREC_INLINE, &err) ||
        tenrec_init_rpc(m.worker, &err))
        side_give_up(&err);
    if (rank == 0)
        call_often(&m);
    if (write(atoi(argv[3]), "", 1) != 1)
        pair_die("write");
    pause(); /* until killed */
    return 0;
}

static long status_of(pid_t pid, const char *key)
{
    char path[64], line[256];
    long value = -1;
    FILE *f;

    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, key, strlen(key)))
            value = strtol(line + strlen(key), NULL, 10);
    if (f)
        fclose(f);
    return value;
}

static double cpu_percent(const pid_t p[2], unsigned window_ms)
{
    uint64_t cpu = pair_cpu_ns(p[0]) + pair_cpu_ns(p[1]), begin = samples_now_ns();

    side_pause_ms(window_ms);
    cpu = pair_cpu_ns(p[0]) + pair_cpu_ns(p[1]) - cpu;
    return 100.0 * (double)cpu / (double)(samples_now_ns() - begin);
}

static bool both_rest(int fd)
{
    char byte[2];

    return pair_read(fd, byte, 1) && pair_read(fd, byte, 1);
}

int rest_main(const char *via, bool moment)
{
    struct side *s = side_new(via, "adaptive", 2);
    unsigned settle_ms = pair_quick() ? 500 : 10000, window_ms = pair_quick() ? 500 : 5000;
    struct resting r[2];
    int ready[2], rc = 1;
    pid_t p[2];

    if (moment) {
        settle_ms = 200;
        window_ms = 1000;
    }
    unsetenv("BENCH_CPUS");
    if (pipe(ready))
        pair_die("pipe");
    for (int i = 0; i < 2; i++) {
        r[i] = (struct resting){ s, i, ready[1] };
        p[i] = pair_fork(run, &r[i]);
    }
    close(ready[1]);
    if (both_rest(ready[0])) {
        side_pause_ms(settle_ms);
        printf("{\"peer\": \"tenrec\", \"via\": \"%s\", \"mode\": \"%s\", \"cpu_percent\": %.4f, ",
               via, moment ? "after" : "idle", cpu_percent(p, window_ms));
        printf("\"threads\": %ld, \"rss_kib\": %ld}\n", status_of(p[1], "Threads:"),
               status_of(p[1], "VmRSS:"));
        rc = 0;
    } else {
        fprintf(stderr, "bench: a worker did not become idle\n");
    }
    for (int i = 0; i < 2; i++)
        kill(p[i], SIGKILL);
    for (int i = 0; i < 2; i++)
        waitpid(p[i], NULL, 0);
    side_drop(s);
    return rc;
}
