/* SPDX-License-Identifier: Apache-2.0 */
#include "driver.h"

#include "samples.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIMIT_S 100 /* of one run, in case a peer hangs */

struct figures {
    struct samples times; /* of batches */
    size_t batch, calls;
    uint64_t wall_ns, cpu_ns; /* of `calls` */
};

bool driver_lists(const char *list, const char *word)
{
    size_t n = strlen(word);

    for (const char *at = list; n && (at = strstr(at, word)); at += n)
        if ((at == list || at[-1] == ' ') && (at[n] == ' ' || !at[n]))
            return true;
    return false;
}

void driver_say(const struct trial *t, const void *text, size_t n)
{
    pair_write(t->fd, &n, sizeof n);
    pair_write(t->fd, text, n);
}

size_t driver_hear(const struct trial *t, void *ret_text, size_t room)
{
    size_t n;

    errno = EPIPE;
    if (!pair_read(t->fd, &n, sizeof n) || n > room || !pair_read(t->fd, ret_text, n))
        pair_die("%s: the other process sent no address", t->peer);
    return n;
}

void driver_kill(struct trial *t)
{
    t->killed = !kill(t->callee, SIGKILL);
}

/* ---- timing ---------------------------------------------------------------------- */

static uint64_t span_ns(void)
{
    return pair_quick() ? 40000000u : 400000000u;
}

static bool is_large(const struct trial *t)
{
    return strcmp(t->mode, "latency") != 0 && strcmp(t->mode, "rate") != 0;
}

/* Calls for a tenth of the time; returns the shortest duration in nanoseconds: a busy
 * machine makes calls longer, never shorter. */
static uint64_t warm_up(const struct way *w, struct trial *t)
{
    uint64_t begin = samples_now_ns(), now = begin, shortest = UINT64_MAX;
    uint64_t span = span_ns() / 10;
    size_t n = 0, least = w->most_calls ? 1 : 3;

    while (n < least || (now - begin < span && !w->most_calls)) {
        uint64_t from = now;

        w->call(t);
        n++;
        now = samples_now_ns();
        shortest = now - from < shortest ? now - from : shortest;
    }
    return shortest + 1;
}

static uint64_t cpu_of_both(const struct trial *t)
{
    return pair_cpu_ns(t->caller) + pair_cpu_ns(t->callee);
}

static void time_calls(const struct way *w, struct trial *t, struct figures *f)
{
    uint64_t one = warm_up(w, t), cpu = cpu_of_both(t), span = span_ns(), begin, now;
    size_t least = 5, most = w->most_calls ? w->most_calls : SIZE_MAX;

    f->batch = one < 2000 && !w->most_calls ? 16000 / one + 1 : 1;
    begin = now = samples_now_ns();
    while ((now - begin < span || f->times.n < least) && f->calls < most &&
           f->times.n < f->times.room) {
        uint64_t from = samples_now_ns();

        for (size_t i = 0; i < f->batch; i++)
            w->call(t);
        now = samples_now_ns();
        samples_add(&f->times, now - from);
        f->calls += f->batch;
    }
    f->wall_ns = now - begin;
    f->cpu_ns = cpu_of_both(t) - cpu;
}

/* Repeats with more calls until they take long enough; the last round counts. */
static void time_flood(const struct way *w, struct trial *t, struct figures *f)
{
    f->calls = 40 * PAIR_INFLIGHT;
    for (;;) {
        uint64_t cpu = cpu_of_both(t), begin = samples_now_ns();

        w->flood(t, f->calls);
        f->wall_ns = samples_now_ns() - begin;
        f->cpu_ns = cpu_of_both(t) - cpu;
        if (f->wall_ns >= span_ns() / 2)
            return;
        f->calls *= f->wall_ns < span_ns() / 16 ? 8 : 2;
    }
}

static void print(const struct way *w, struct trial *t, struct figures *f)
{
    printf("{\"peer\": \"%s\", \"via\": \"%s\", \"mode\": \"%s\", \"progress\": \"%s\", "
           "\"size_bytes\": %zu, \"calls\": %zu",
           t->peer, t->via, t->mode, t->progress, t->size, f->calls);
    if (f->times.n) {
        double one = samples_us(&f->times, 0.5) / (double)f->batch;

        printf(", \"batch\": %zu, \"p50_us\": %.4f, \"p99_us\": %.4f", f->batch, one,
               samples_us(&f->times, 0.99) / (double)f->batch);
        if (is_large(t))
            printf(", \"gb_per_s\": %.4f", (double)t->size / (one * 1e3));
    }
    printf(", \"calls_per_s\": %.1f, \"cpu_us_per_call\": %.4f",
           (double)f->calls * 1e9 / (double)f->wall_ns, (double)f->cpu_ns / 1e3 / (double)f->calls);
    if (w->tell)
        w->tell(t, stdout);
    printf("}\n");
    fflush(stdout);
}

/* ---- one run ---------------------------------------------------------------------- */

struct role {
    const struct way *way;
    struct trial *trial;
    int fd[2]; /* [0] the caller's end */
};

static int callee_main(void *arg)
{
    struct role *r = arg;

    close(r->fd[0]);
    r->trial->fd = r->fd[1];
    return r->way->serve(r->trial);
}

static int run(const struct way *w, struct trial *t)
{
    size_t shared = w->shared_bytes ? w->shared_bytes(t->size) : 0;
    struct role role = { .way = w, .trial = t };
    struct figures f = { .batch = 1 };
    bool ok;

    alarm(LIMIT_S);
    if (samples_init(&f.times, 1 << 18) ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, role.fd))
        pair_die("socketpair");
    t->caller = getpid();
    t->shared = shared ? pair_memory(shared, true) : NULL;
    if (w->prepare)
        w->prepare(t);
    t->callee = pair_fork(callee_main, &role);
    close(role.fd[1]);
    t->fd = role.fd[0];
    w->open(t);
    if (!strcmp(t->mode, "rate"))
        time_flood(w, t, &f);
    else
        time_calls(w, t, &f);
    print(w, t, &f);
    w->close(t);
    close(t->fd);
    ok = t->killed ? waitpid(t->callee, NULL, 0) == t->callee : pair_join(t->callee);
    if (w->clean)
        w->clean(t);
    samples_finish(&f.times);
    return ok ? 0 : 1;
}

/* Each size runs in a process of its own, which forks the callee before the peer's
 * library starts threads. */
static int run_in_child(const struct way *w, struct trial *t)
{
    int status;
    pid_t p = fork();

    if (p < 0)
        pair_die("fork");
    if (p == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit(run(w, t));
    }
    if (waitpid(p, &status, 0) != p)
        pair_die("waitpid");
    if (WIFSIGNALED(status))
        fprintf(stderr, "bench: %s ended by signal %d\n", t->peer, WTERMSIG(status));
    return status ? 1 : 0;
}

/* ---- the command line --------------------------------------------------------------- */

static int usage(const char *program, const struct way *ways, size_t n)
{
    fprintf(stderr, "usage: %s MODE PROGRESS VIA [BYTES,...]\n", program);
    for (size_t i = 0; i < n; i++)
        fprintf(stderr, "       %s: %s: %s\n", ways[i].via, ways[i].modes, ways[i].progress);
    return 2;
}

static const struct way *find(const struct way *ways, size_t n, const char *mode,
                              const char *progress, const char *via)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(ways[i].via, via) && driver_lists(ways[i].modes, mode) &&
            driver_lists(ways[i].progress, progress))
            return &ways[i];
    return NULL;
}

int driver_main(int argc, char **argv, const struct way *ways, size_t n)
{
    struct trial t = { 0 };
    const struct way *w = NULL;
    const char *sizes;
    int rc = 0;

    if (argc == 4 || argc == 5)
        w = find(ways, n, argv[1], argv[2], argv[3]);
    if (!w)
        return usage(argv[0], ways, n);
    t.peer = w->peer;
    t.mode = argv[1];
    t.progress = argv[2];
    t.via = argv[3];
    t.busy = !strcmp(t.progress, "busy");
    sizes = argc == 5 ? argv[4] : is_large(&t) ? "67108864" : "64";
    while (!rc && *sizes) {
        char *end;

        t.size = strtoull(sizes, &end, 10);
        if (end == sizes || (*end && *end != ',') || t.size < PAIR_SMALL || t.size > SIZE_MAX / 4)
            return usage(argv[0], ways, n);
        sizes = *end ? end + 1 : end;
        rc = run_in_child(w, &t);
    }
    return rc;
}
