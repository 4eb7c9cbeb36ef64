#include "workers.h"

#include "samples.h"
#include "spawn.h"
#include "stream.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <tenrec/store.h>
#include <unistd.h>

/* Output may still lie in the pipes when the last worker has ended; whoever
 * holds a pipe open longer than this is not waited for. */
#define LAST_WORDS_MS 2000

#define NEVER UINT64_MAX

struct worker {
    pid_t pid; /* leads a group; its number stays ours until it is reaped */
    bool running;
    int fd[3]; /* -1 when closed */
    struct stream stream[3];
};

struct run {
    const struct workers_plan *plan;
    struct worker *worker;
    int started, running;
    int signal_fd;
    int signals; /* how many of the user's came */
    bool killed;
    int status;       /* what we exit with */
    bool failed;      /* status is decided */
    bool deaf;        /* nobody reads our stdout any more */
    uint64_t kill_at; /* deadline of those that were told to end */
    struct screen screen;
};

static const int forwarded[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };

/* One line of ours on stderr. */
TENREC_PRINTF(2, 3)
static void say(struct run *r, const char *fmt, ...)
{
    char text[512];
    int n = snprintf(text, sizeof text, "tenrec %s: ", r->plan->tool->name);
    size_t len;
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text + n, sizeof text - (size_t)n, fmt, ap);
    va_end(ap);
    len = strlen(text);
    text[len] = '\n';
    screen_print(&r->screen, 2, text, len + 1);
}

static void signal_all(struct run *r, int sig)
{
    for (int i = 0; i < r->started; i++)
        if (r->worker[i].running)
            kill(-r->worker[i].pid, sig);
}

/* Asks those that still run to end; kill_late does the rest. */
static void end_all(struct run *r, int sig)
{
    signal_all(r, sig);
    if (r->kill_at == NEVER)
        r->kill_at = samples_now_ns() + r->plan->grace_ms * 1000000u;
}

static void kill_all(struct run *r)
{
    signal_all(r, SIGKILL);
    r->kill_at = NEVER;
    r->killed = true;
}

static void on_user_signal(struct run *r, int sig)
{
    if (++r->signals == 1) {
        end_all(r, sig);
        return;
    }
    kill_all(r);
    if (r->signals == 2)
        say(r, "SIG%s again: killed all workers", sigabbrev_np(sig));
}

static void how_it_ended(int status, char *buf, size_t n)
{
    const char *name;

    if (WIFEXITED(status)) {
        snprintf(buf, n, "exit status %d", WEXITSTATUS(status));
        return;
    }
    name = sigabbrev_np(WTERMSIG(status));
    if (name)
        snprintf(buf, n, "killed by SIG%s", name);
    else
        snprintf(buf, n, "killed by signal %d", WTERMSIG(status));
}

static void on_end(struct run *r, int rank, int status)
{
    char how[64];

    r->worker[rank].running = false;
    r->running--;
    if (status == 0 || (r->failed && !r->plan->keep_going))
        return;
    if (!r->failed)
        r->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    r->failed = true;
    how_it_ended(status, how, sizeof how);
    if (r->plan->keep_going && !r->signals) {
        say(r, "rank %d failed: %s; %d go on", rank, how, r->running);
        return;
    }
    end_all(r, SIGTERM);
    if (r->running && !r->signals)
        say(r, "rank %d failed: %s; ending the other %d", rank, how, r->running);
    else
        say(r, "rank %d failed: %s", rank, how);
}

static void reap(struct run *r)
{
    for (int i = 0; i < r->started; i++) {
        struct worker *w = &r->worker[i];
        siginfo_t seen = { .si_pid = 0 };
        int status;

        /* Looked at before it is reaped: until then its number, and so that of
         * its group, can belong to nobody else. */
        if (!w->running || waitid(P_PID, (id_t)w->pid, &seen, WEXITED | WNOHANG | WNOWAIT) ||
            seen.si_pid == 0)
            continue;
        kill(-w->pid, SIGKILL); /* what it left behind */
        if (waitpid(w->pid, &status, 0) == w->pid)
            on_end(r, i, status);
    }
}

static void read_signals(struct run *r)
{
    struct signalfd_siginfo info;

    while (read(r->signal_fd, &info, sizeof info) == sizeof info)
        if (info.ssi_signo == SIGCHLD)
            reap(r);
        else
            on_user_signal(r, (int)info.ssi_signo);
}

/* The shorter of two limits, as poll wants it. */
static int wait_ms(uint64_t a, uint64_t b)
{
    uint64_t until = a < b ? a : b, now = samples_now_ns();

    if (until == NEVER)
        return -1;
    return until <= now ? 0 : (int)((until - now) / 1000000u) + 1;
}

static void kill_late(struct run *r)
{
    if (r->kill_at == NEVER || samples_now_ns() < r->kill_at)
        return;
    kill_all(r);
    if (r->running)
        say(r, "%d workers did not end within %.1f s: killed them", r->running,
            (double)r->plan->grace_ms / 1e3);
}

/* Nobody reads our stdout any more, or it has no room: the workers end. The
 * first is usual (head), and told by the status alone. */
static void cannot_write(struct run *r, int why)
{
    r->deaf = true;
    r->failed = true;
    r->status = why == EPIPE ? 128 + SIGPIPE : TOOL_FAILED;
    if (why != EPIPE)
        say(r, "cannot write to stdout: %s; ending the workers", strerror(why));
    end_all(r, SIGTERM);
}

/* A reader that stopped reading must not keep us from ending, so signals and
 * deadlines are looked after here too, and what is left is thrown away once
 * the workers were killed. A pipe that poll calls writable takes PIPE_BUF bytes
 * without blocking. */
static void write_out(void *arg, int fd, const char *data, size_t n)
{
    struct run *r = arg;

    while (n && !(fd == 1 && r->deaf)) {
        struct pollfd p[2] = { { fd, POLLOUT, 0 }, { r->signal_fd, POLLIN, 0 } };
        ssize_t k;

        /* Of workers that were killed no signal has to come any more. */
        if (poll(p, 2, r->killed ? 0 : wait_ms(r->kill_at, NEVER)) < 0 && errno != EINTR)
            return;
        if (!p[0].revents) {
            if (r->killed)
                return;
            read_signals(r);
            kill_late(r);
            continue;
        }
        k = write(fd, data, n < PIPE_BUF ? n : PIPE_BUF);
        if (k < 0 && errno != EINTR && errno != EAGAIN) {
            if (fd == 1)
                cannot_write(r, errno);
            return;
        }
        if (k > 0) {
            data += k;
            n -= (size_t)k;
        }
    }
}

/* ---- what the workers write ------------------------------------------------- */

static void close_stream(struct worker *w, int which)
{
    close(w->fd[which]);
    w->fd[which] = -1;
    stream_finish(&w->stream[which]);
}

static void read_stream(struct worker *w, int which)
{
    char buf[16384];
    ssize_t k = read(w->fd[which], buf, sizeof buf);

    if (k > 0)
        stream_feed(&w->stream[which], buf, (size_t)k);
    else if (k == 0 || (errno != EINTR && errno != EAGAIN)) /* EIO: end of a terminal */
        close_stream(w, which);
}

/* Collects what poll shall watch; who[i] says whose p[i] is. */
static size_t watch(struct run *r, struct pollfd *p, struct worker **who)
{
    size_t n = 0;

    p[n] = (struct pollfd){ r->signal_fd, POLLIN, 0 };
    who[n++] = NULL;
    for (int i = 0; i < r->started; i++)
        for (int k = 1; k <= 2; k++)
            if (r->worker[i].fd[k] >= 0) {
                p[n] = (struct pollfd){ r->worker[i].fd[k], POLLIN, 0 };
                who[n++] = &r->worker[i];
            }
    return n;
}

static void watch_until_the_end(struct run *r, struct pollfd *p, struct worker **who)
{
    uint64_t last = NEVER;

    for (;;) {
        size_t n = watch(r, p, who);

        if (!r->running && last == NEVER)
            last = samples_now_ns() + LAST_WORDS_MS * UINT64_C(1000000);
        if (!r->running && (n == 1 || samples_now_ns() >= last))
            return;
        if (poll(p, n, wait_ms(r->kill_at, last)) < 0 && errno != EINTR)
            return;
        for (size_t i = 1; i < n; i++)
            if (p[i].revents)
                read_stream(who[i], p[i].fd == who[i]->fd[1] ? 1 : 2);
        read_signals(r);
        kill_late(r);
    }
}

/* ---- start --------------------------------------------------------------------*/

static bool start_one(struct run *r, int rank, uint16_t port, const char *run_id, tenrec_error *err)
{
    const struct workers_plan *plan = r->plan;
    struct worker *w = &r->worker[rank];
    char text[8][80], *config = NULL, **set, **env;
    struct spawn what = { .argv = plan->argv };
    struct spawned got;
    char prefix[16] = "";
    size_t n = 0;
    tenrec_status st;

    snprintf(text[0], sizeof text[0], "RANK=%d", rank);
    snprintf(text[1], sizeof text[1], "LOCAL_RANK=%d", rank);
    snprintf(text[2], sizeof text[2], "WORLD_SIZE=%d", plan->n);
    snprintf(text[3], sizeof text[3], "LOCAL_WORLD_SIZE=%d", plan->n);
    snprintf(text[4], sizeof text[4], "MASTER_ADDR=127.0.0.1");
    snprintf(text[5], sizeof text[5], "MASTER_PORT=%u", (unsigned)port);
    snprintf(text[6], sizeof text[6], "TORCHELASTIC_USE_AGENT_STORE=True");
    snprintf(text[7], sizeof text[7], "TENREC_RUN_ID=%s", run_id);
    set = calloc(plan->n_set + 9, sizeof *set);
    if (!set || (plan->config && asprintf(&config, "TENREC_CONFIG=%s", plan->config) < 0)) {
        free(set);
        return tenrec_fail(err, TENREC_ENOMEM, "out of memory") == TENREC_OK;
    }
    while (n < 8) {
        set[n] = text[n];
        n++;
    }
    if (config)
        set[n++] = config;
    for (size_t i = 0; i < plan->n_set; i++)
        set[n++] = plan->set[i];
    env = spawn_environment(set, n);
    if (plan->prefix)
        snprintf(prefix, sizeof prefix, "[%d] ", rank);
    what.env = env;
    what.terminal = rank == 0 && r->screen.terminal[1];
    what.narrower = (int)strlen(prefix);
    st = env ? spawn(&what, &got, err) : tenrec_fail(err, TENREC_ENOMEM, "out of memory");
    free(env);
    free(set);
    free(config);
    if (st)
        return false;
    w->pid = got.pid;
    w->running = true;
    r->running++;
    r->started++;
    for (int k = 1; k <= 2; k++) {
        w->fd[k] = got.fd[k];
        stream_init(&w->stream[k], &r->screen, k, prefix, k == 1 && what.terminal);
    }
    return true;
}

/* Differs between two runs, also on two machines. */
static void make_run_id(char *ret, size_t n)
{
    unsigned char b[8];

    if (getrandom(b, sizeof b, 0) != sizeof b) {
        uint64_t now = samples_now_ns() ^ ((uint64_t)getpid() << 40);

        memcpy(b, &now, sizeof b);
    }
    for (size_t i = 0; i < sizeof b && 2 * i + 2 < n; i++)
        snprintf(ret + 2 * i, 3, "%02x", b[i]);
}

static void start_all(struct run *r, uint16_t port)
{
    char run_id[20] = "";
    tenrec_error err;

    make_run_id(run_id, sizeof run_id);
    for (int i = 0; i < r->plan->n; i++) {
        if (start_one(r, i, port, run_id, &err))
            continue;
        r->failed = true;
        r->status = err.code == TENREC_ENOTFOUND ? 127 : 126;
        end_all(r, SIGTERM);
        say(r, "%s", err.text);
        return;
    }
}

static int open_signals(void)
{
    sigset_t set;

    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    for (size_t i = 0; i < sizeof forwarded / sizeof forwarded[0]; i++)
        sigaddset(&set, forwarded[i]);
    /* Before the store's thread starts: it inherits the mask. */
    if (sigprocmask(SIG_BLOCK, &set, NULL))
        return -1;
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int workers_run(const struct workers_plan *plan)
{
    struct run r = { .plan = plan, .kill_at = NEVER };
    struct tenrec_store_server *server = NULL;
    struct pollfd *p = calloc((size_t)plan->n * 2 + 1, sizeof *p);
    struct worker **who = calloc((size_t)plan->n * 2 + 1, sizeof(*who));
    tenrec_error err;
    uint16_t port;

    r.worker = calloc((size_t)plan->n, sizeof *r.worker);
    r.signal_fd = open_signals();
    r.screen = (struct screen){ .write = write_out, .arg = &r, .live_fd = 1 };
    r.screen.terminal[1] = isatty(1) == 1;
    r.screen.terminal[2] = isatty(2) == 1;
    if (!p || !who || !r.worker || r.signal_fd < 0) {
        r.status = tool_fail(plan->tool, "cannot prepare %d workers: %s", plan->n, strerror(errno));
    } else if (tenrec_store_serve("127.0.0.1", 0, &server, &port, &err)) {
        r.status = tool_fail(plan->tool, "cannot serve the store of the group: %s", err.text);
    } else {
        fflush(NULL);
        if (plan->verbose)
            say(&r, "store tcp://127.0.0.1:%u", (unsigned)port);
        start_all(&r, port);
        watch_until_the_end(&r, p, who);
    }
    for (int i = 0; i < r.started; i++)
        for (int k = 1; k <= 2; k++)
            if (r.worker[i].fd[k] >= 0)
                close_stream(&r.worker[i], k);
    tenrec_store_server_drop(server);
    if (r.signal_fd >= 0)
        close(r.signal_fd);
    free(r.worker);
    free(who);
    free(p);
    return r.status;
}
