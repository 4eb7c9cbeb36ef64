/* tenrec_bench.c - the work of raw.c on Tenrec, and its start and rest.
 *
 *     tenrec_bench latency|rate|bandwidth busy|adaptive|sleep
 *     tenrec_bench init       8 workers over a file store, first call in to
 *                             last return
 *     tenrec_bench idle       one of 2 workers after its last call: CPU,
 *                             threads, memory
 *
 * All on the tensorpipe backend, transport uv, channel basic. */
#include "measure.h"
#include "pair.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <tenrec/tenrec.h>
#include <time.h>
#include <unistd.h>

#define INIT_WORLD 8

/* What all processes of one run share; mapped before the first fork. */
struct shared {
    char store[64]; /* path of the file store */
    const char *progress;
    int world;
    _Atomic int ready;
    uint64_t begin_ns[INIT_WORLD], end_ns[INIT_WORLD];
};

static void give_up(const tenrec_error *err)
{
    fprintf(stderr, "bench: tenrec: %s: %s\n", tenrec_status_name(err->code), err->text);
    exit(1);
}

static void pause_ms(unsigned ms)
{
    struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 };

    nanosleep(&t, NULL);
}

static struct tenrec_config *make_config(const struct shared *s, int rank)
{
    struct tenrec_config *c;
    tenrec_error err;
    char text[512];

    snprintf(text, sizeof text,
             "worker: { name: \"w{rank}\", rank: %d, world_size: %d }\n"
             "init_method: file://%s\n"
             "backend: tensorpipe\n"
             "backends:\n"
             "  tensorpipe: { plugin: tensorpipe, options: { transports: [uv], channels: [basic],"
             " progress: %s } }\n",
             rank, s->world, s->store, s->progress);
    if (tenrec_config_parse(text, "bench", &c, &err))
        give_up(&err);
    return c;
}

static struct tenrec_worker *make_worker(const struct shared *s, int rank)
{
    struct tenrec_config *c = make_config(s, rank);
    struct tenrec_worker *w;
    tenrec_error err;

    if (tenrec_worker_new(c, &w, &err))
        give_up(&err);
    tenrec_config_drop(c);
    return w;
}

static void end_worker(struct tenrec_worker *w)
{
    tenrec_error err;

    if (tenrec_shutdown(w, TENREC_GRACEFUL, TENREC_TIMEOUT_DEFAULT, &err))
        give_up(&err);
    tenrec_worker_drop(w);
}

/* Rank 1 of the pair: answers until it is told to end. */
static int callee_main(void *arg)
{
    struct tenrec_worker *w = make_worker(arg, 1);
    struct measure_callee c;
    tenrec_error err;

    if (measure_callee_init(&c, w, PAIR_LARGE, &err) || tenrec_init_rpc(w, &err))
        give_up(&err);
    measure_callee_wait(&c);
    end_worker(w);
    measure_callee_finish(&c);
    return 0;
}

/* ---- system calls --------------------------------------------------------------- */

struct counters {
    uint64_t sends, receives, messages_sent, messages_received;
};

static void on_counter(void *arg, const char *key, const char *value)
{
    struct counters *c = arg;
    uint64_t n = strtoull(value, NULL, 10);

    if (!strcmp(key, "tensorpipe.sends"))
        c->sends = n;
    else if (!strcmp(key, "tensorpipe.receives"))
        c->receives = n;
    else if (!strcmp(key, "tensorpipe.messages_sent"))
        c->messages_sent = n;
    else if (!strcmp(key, "tensorpipe.messages_received"))
        c->messages_received = n;
}

/* [0] the caller's, [1] the callee's. */
static void read_counters(const struct measure *m, struct counters ret[2])
{
    tenrec_error err;

    memset(ret, 0, 2 * sizeof ret[0]);
    tenrec_worker_debug_info(m->worker, on_counter, &ret[0]);
    if (measure_callee_info(m, on_counter, &ret[1], &err))
        give_up(&err);
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static void per_message(struct pair_result *r, const struct counters before[2],
                        const struct counters after[2])
{
    for (int i = 0; i < 2; i++) {
        uint64_t sent = after[i].messages_sent - before[i].messages_sent;
        uint64_t received = after[i].messages_received - before[i].messages_received;

        if (!sent || !received)
            continue;
        r->sends_per_message =
            larger(r->sends_per_message, (double)(after[i].sends - before[i].sends) / (double)sent);
        r->receives_per_message =
            larger(r->receives_per_message,
                   (double)(after[i].receives - before[i].receives) / (double)received);
    }
}

/* ---- modes ----------------------------------------------------------------------- */

static uint64_t cpu_of_both(const struct measure *m)
{
    tenrec_error err;
    uint64_t ns;

    if (measure_callee_cpu(m, &ns, &err))
        give_up(&err);
    return pair_cpu_ns() + ns;
}

static int run_pair(struct shared *s, const char *mode)
{
    struct pair_result r = { .peer = "tenrec", .mode = mode, .progress = s->progress };
    struct counters before[2], after[2];
    struct measure m = { .to = "w1", .calls = pair_calls(mode), .warm = pair_warm(mode) };
    struct samples times;
    tenrec_error err;
    tenrec_status st;
    uint64_t cpu;
    pid_t p;

    if (!strcmp(mode, "rate")) {
        m.size = PAIR_SMALL;
        m.inflight = PAIR_INFLIGHT;
    } else if (!strcmp(mode, "bandwidth")) {
        m.size = PAIR_LARGE;
    }
    r.size_bytes = m.size;
    r.inflight = m.inflight ? m.inflight : 1;
    r.calls = m.calls;
    if (samples_init(&times, m.calls))
        pair_die("calloc");
    s->world = 2;
    p = pair_fork(callee_main, s);
    m.worker = make_worker(s, 0);
    if (tenrec_init_rpc(m.worker, &err))
        give_up(&err);
    read_counters(&m, before); /* opens the connection, too */
    read_counters(&m, before);
    cpu = cpu_of_both(&m);
    if (m.inflight)
        st = measure_rate(&m, &r.wall_ns, &err);
    else if (!strcmp(mode, "bandwidth"))
        st = measure_bandwidth(&m, &times, &err);
    else
        st = measure_latency(&m, &times, &err);
    if (st)
        give_up(&err);
    cpu = cpu_of_both(&m) - cpu;
    read_counters(&m, after);
    if (m.size < PAIR_LARGE)
        per_message(&r, before, after);
    if (measure_end(&m, &err))
        give_up(&err);
    end_worker(m.worker);
    if (!pair_join(p))
        return 1;
    r.cpu_us_per_call = (double)cpu / 1e3 / (double)(m.calls + m.warm);
    pair_print(&r, &times);
    samples_finish(&times);
    return 0;
}

static int init_main(struct shared *s, int rank)
{
    struct tenrec_worker *w;
    tenrec_error err;

    /* All begin at once. */
    atomic_fetch_add(&s->ready, 1);
    while (atomic_load(&s->ready) <= s->world)
        pause_ms(1);
    s->begin_ns[rank] = samples_now_ns();
    w = make_worker(s, rank);
    if (tenrec_init_rpc(w, &err))
        give_up(&err);
    s->end_ns[rank] = samples_now_ns();
    end_worker(w);
    return 0;
}

struct child {
    struct shared *shared;
    int rank;
};

static int init_child(void *arg)
{
    struct child *c = arg;

    return init_main(c->shared, c->rank);
}

static int run_init(struct shared *s)
{
    struct child c[INIT_WORLD];
    pid_t p[INIT_WORLD];
    uint64_t first = UINT64_MAX, last = 0;
    bool ok = true;

    unsetenv("BENCH_CPUS");
    s->world = INIT_WORLD;
    for (int i = 0; i < INIT_WORLD; i++) {
        c[i] = (struct child){ s, i };
        p[i] = pair_fork(init_child, &c[i]);
    }
    for (int ms = 0; atomic_load(&s->ready) < s->world; ms++) {
        if (ms == 30000) {
            fprintf(stderr, "bench: not all workers started\n");
            return 1;
        }
        pause_ms(1);
    }
    pause_ms(100); /* until all wait */
    atomic_fetch_add(&s->ready, 1);
    for (int i = 0; i < INIT_WORLD; i++)
        ok = pair_join(p[i]) && ok;
    if (!ok)
        return 1;
    for (int i = 0; i < INIT_WORLD; i++) {
        first = s->begin_ns[i] < first ? s->begin_ns[i] : first;
        last = s->end_ns[i] > last ? s->end_ns[i] : last;
    }
    printf("{\"peer\": \"tenrec\", \"mode\": \"init\", \"world\": %d, \"init_s\": %.6f}\n",
           s->world, (double)(last - first) / 1e9);
    return 0;
}

/* One of the two that rest: a program of its own, as a user's would be, so that
 * it holds no pages of its parent. Says through `ready_fd` that it is done. */
static int rest(struct shared *s, int rank, int ready_fd)
{
    struct tenrec_worker *w;
    struct measure_callee callee;
    struct measure m = { .to = "w1" };
    tenrec_error err;
    uint64_t cpu;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    s->world = 2;
    m.worker = w = make_worker(s, rank);
    if (measure_callee_init(&callee, w, 64, &err) || tenrec_init_rpc(w, &err))
        give_up(&err);
    if (rank == 0 && measure_callee_cpu(&m, &cpu, &err))
        give_up(&err);
    if (write(ready_fd, "", 1) != 1)
        pair_die("write");
    pause(); /* until it is killed */
    return 0;
}

struct resting {
    const char *store;
    int rank, ready_fd;
};

static int exec_rest(void *arg)
{
    const struct resting *r = arg;
    char rank[16], fd[16];

    snprintf(rank, sizeof rank, "%d", r->rank);
    snprintf(fd, sizeof fd, "%d", r->ready_fd);
    execl("/proc/self/exe", "tenrec_bench", "rest", r->store, rank, fd, (char *)NULL);
    pair_die("exec");
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

/* CPU time of another process, to the nanosecond. */
static uint64_t cpu_of(pid_t pid)
{
    struct timespec t = { 0 };
    clockid_t clock;

    if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &t))
        pair_die("cannot read the CPU time of process %d", (int)pid);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int run_idle(struct shared *s)
{
    const char *quick = getenv("BENCH_QUICK");
    unsigned settle_ms = 10000, window_ms = 5000;
    struct resting c[2];
    uint64_t cpu, begin;
    int ready[2];
    pid_t p[2];

    if (quick && strcmp(quick, "0") != 0)
        settle_ms = window_ms = 2000;
    unsetenv("BENCH_CPUS");
    if (pipe(ready))
        pair_die("pipe");
    for (int i = 0; i < 2; i++) {
        c[i] = (struct resting){ s->store, i, ready[1] };
        p[i] = pair_fork(exec_rest, &c[i]);
    }
    close(ready[1]);
    for (int i = 0; i < 2; i++) {
        char byte;

        if (read(ready[0], &byte, 1) != 1) {
            fprintf(stderr, "bench: a worker did not come to rest\n");
            return 1;
        }
    }
    pause_ms(settle_ms);
    cpu = cpu_of(p[1]);
    begin = samples_now_ns();
    pause_ms(window_ms);
    cpu = cpu_of(p[1]) - cpu;
    printf(
        "{\"peer\": \"tenrec\", \"mode\": \"idle\", \"progress\": \"%s\", \"cpu_percent\": %.4f, "
        "\"threads\": %ld, \"rss_kib\": %ld}\n",
        s->progress, 100.0 * (double)cpu / (double)(samples_now_ns() - begin),
        status_of(p[1], "Threads:"), status_of(p[1], "VmRSS:"));
    for (int i = 0; i < 2; i++)
        kill(p[i], SIGKILL);
    for (int i = 0; i < 2; i++)
        waitpid(p[i], NULL, 0);
    return 0;
}

static bool one_of(const char *word, const char *const *list)
{
    for (; *list; list++)
        if (!strcmp(word, *list))
            return true;
    return false;
}

int main(int argc, char **argv)
{
    static const char *const pairs[] = { "latency", "rate", "bandwidth", NULL };
    static const char *const waits[] = { "busy", "adaptive", "sleep", NULL };
    struct shared *s =
        mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const char *mode = argc > 1 ? argv[1] : "";
    char folder[] = "/tmp/tenrec-bench-XXXXXX";
    int rc = 2;

    if (s == MAP_FAILED)
        pair_die("mmap");
    s->progress = argc > 2 ? argv[2] : "adaptive";
    if (argc == 5 && !strcmp(mode, "rest")) {
        snprintf(s->store, sizeof s->store, "%s", argv[2]);
        s->progress = "adaptive";
        return rest(s, atoi(argv[3]), atoi(argv[4]));
    }
    if (!mkdtemp(folder))
        pair_die("cannot make a folder in /tmp");
    snprintf(s->store, sizeof s->store, "%s/store", folder);
    if (argc == 3 && one_of(mode, pairs) && one_of(s->progress, waits))
        rc = run_pair(s, mode);
    else if (argc == 2 && !strcmp(mode, "init"))
        rc = run_init(s);
    else if (argc == 2 && !strcmp(mode, "idle"))
        rc = run_idle(s);
    else
        fprintf(stderr, "usage: tenrec_bench latency|rate|bandwidth busy|adaptive|sleep\n"
                        "       tenrec_bench init|idle\n");
    unlink(s->store);
    rmdir(folder);
    return rc;
}
