/* SPDX-License-Identifier: Apache-2.0 */
/* puppet.c - a worker that executes the orders of a test.
 *
 *     puppet SOCKET [SIGTERM]
 *
 * Connects to the local socket, says "hello RANK PID" and then answers each
 * line that it reads there with one line: "ok ...", or "fail CODE WORKER TEXT".
 * Callbacks are reported as "event ...". SIGTERM sets the handling of that
 * signal: default, ignore, or handle (it then leaves in good order).
 */
#include <tenrec/store.h>

#include "../support/debug_info.h"
#include "exchange.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { WORDS_MAX = 32, FUTURES_MAX = 64, LEAVE_MS = 20000, LINE_MAX_BYTES = 4096 };

static const char *control_path;
static int control = -1;
static struct tenrec_worker *parents; /* in the child of a fork: not to be touched */
static pthread_mutex_t control_lock = PTHREAD_MUTEX_INITIALIZER;
static int term_pipe[2];
static struct tenrec_worker *worker;
static struct tenrec_store_server *server;
static struct tenrec_future *started[FUTURES_MAX];
static size_t n_started, n_awaited;

/* ---- what it says --------------------------------------------------------- */

TENREC_PRINTF(1, 2)
static void say(const char *fmt, ...)
{
    char line[1024];
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(line, sizeof line - 1, fmt, ap);
    va_end(ap);
    n = n < (int)sizeof line - 2 ? n : (int)sizeof line - 2;
    for (int i = 0; i < n; i++)
        if (line[i] == '\n')
            line[i] = ' ';
    line[n++] = '\n';
    pthread_mutex_lock(&control_lock);
    /* The test is gone: main notices at the next read. */
    (void)!send(control, line, (size_t)n, MSG_NOSIGNAL);
    pthread_mutex_unlock(&control_lock);
}

static void say_fail(tenrec_status st, const tenrec_error *err)
{
    say("fail %s %s %s", tenrec_status_name(st), *err->worker_name ? err->worker_name : "-",
        err->text);
}

static void say_value(const struct tenrec_value *v)
{
    if (v->type == TENREC_VALUE_INT)
        say("ok %" PRId64, v->u.integer);
    else if (v->type == TENREC_VALUE_TEXT)
        say("ok %s", v->u.text);
    else
        say("ok %s", tenrec_value_type_name(v->type));
}

static void peer_lost(struct tenrec_worker *w, tenrec_peer id, const tenrec_error *why, void *arg)
{
    (void)w, (void)arg;
    say("event lost %s %d %s %s", tenrec_status_name(why->code), id, why->worker_name, why->text);
}

static void member_joined(struct tenrec_worker *w, const struct tenrec_worker_info *who,
                          uint64_t version, void *arg)
{
    (void)w, (void)arg;
    say("event joined %s %d %" PRIu64, who->name, who->id, version);
}

static void member_left(struct tenrec_worker *w, const struct tenrec_worker_info *who,
                        const tenrec_error *why, uint64_t version, void *arg)
{
    (void)w, (void)arg;
    say("event left %s %s %" PRIu64, who->name, tenrec_status_name(why->code), version);
}

static const struct tenrec_member_callbacks on_members = { .size = sizeof on_members,
                                                           .joined = member_joined,
                                                           .left = member_left };

/* ---- what it can do ------------------------------------------------------- */

typedef tenrec_status command_fn(char **word, size_t n, tenrec_error *err);

static const char *word_or(char **word, size_t n, size_t i, const char *otherwise)
{
    return i < n ? word[i] : otherwise;
}

/* "init KEY=VALUE ...": makes a worker and starts it. */
static tenrec_status do_init(char **word, size_t n, tenrec_error *err)
{
    struct tenrec_config *config = NULL;
    struct tenrec_worker_info me;
    tenrec_status st = tenrec_config_load(NULL, &config, err);

    for (size_t i = 0; i < n && st == TENREC_OK; i++) {
        char *value = strchr(word[i], '=');
        if (!value)
            return tenrec_fail(err, TENREC_EINVAL, "'%s' has no '='", word[i]);
        *value++ = '\0';
        st = tenrec_config_set(config, word[i], value, err);
    }
    if (st == TENREC_OK)
        st = tenrec_worker_new(config, &worker, err);
    tenrec_config_drop(config);
    if (st == TENREC_OK)
        st = exchange_register(worker, err);
    if (st == TENREC_OK) {
        tenrec_worker_set_peer_lost_callback(worker, peer_lost, NULL);
        st = tenrec_worker_set_member_callbacks(worker, &on_members, err);
    }
    if (st == TENREC_OK) {
        st = tenrec_init_rpc(worker, err);
    }
    if (st == TENREC_OK)
        st = tenrec_get_worker_info(worker, NULL, &me, err);
    if (st == TENREC_OK) {
        say("ok %s", me.name);
    } else {
        tenrec_worker_drop(worker);
        worker = NULL;
    }
    return st;
}

/* "again": starts the worker that was shut down. */
static tenrec_status do_again(char **word, size_t n, tenrec_error *err)
{
    tenrec_status st = tenrec_init_rpc(worker, err);

    (void)word, (void)n;
    if (st == TENREC_OK)
        say("ok");
    return st;
}

/* A call as it stands on a line: TO FUNCTION MS [INT|TEXT ...]. */
struct order {
    struct tenrec_call_options options;
    struct tenrec_value arg[WORDS_MAX];
    size_t n;
};

static tenrec_status read_order(char **word, size_t n, struct order *ret, tenrec_error *err)
{
    char *end;

    *ret = (struct order){ .options.size = sizeof ret->options };
    if (n < 3)
        return tenrec_fail(err, TENREC_EINVAL, "expected TO FUNCTION MS ARGUMENTS");
    ret->options.timeout_ms = strtoll(word[2], NULL, 10);
    for (size_t i = 3; i < n; i++) {
        int64_t number = strtoll(word[i], &end, 10);
        ret->arg[ret->n++] = *end ? tenrec_value_text(word[i]) : tenrec_value_int(number);
    }
    return TENREC_OK;
}

/* "start CALL": makes a call and does not wait. */
static tenrec_status do_start(char **word, size_t n, tenrec_error *err)
{
    struct order o;
    tenrec_status st = read_order(word, n, &o, err);

    if (st == TENREC_OK && n_started == FUTURES_MAX)
        st = tenrec_fail(err, TENREC_EAGAIN, "%d calls are started already", FUTURES_MAX);
    if (st == TENREC_OK)
        st = tenrec_rpc_async(worker, word[0], word[1], o.arg, o.n, &o.options, &started[n_started],
                              err);
    if (st == TENREC_OK) {
        n_started++;
        say("ok");
    }
    return st;
}

/* "await": the end of the first call that was started and not awaited yet. */
static tenrec_status do_await(char **word, size_t n, tenrec_error *err)
{
    struct tenrec_future *f;
    tenrec_status st;

    (void)word, (void)n;
    if (n_awaited == n_started)
        return tenrec_fail(err, TENREC_EINVAL, "no call is started");
    f = started[n_awaited++];
    st = tenrec_future_wait(f, TENREC_TIMEOUT_NONE, err);
    if (st == TENREC_OK)
        say_value(tenrec_future_value(f));
    tenrec_future_drop(f);
    if (n_awaited == n_started)
        n_awaited = n_started = 0;
    return st;
}

/* "call CALL" */
static tenrec_status do_call(char **word, size_t n, tenrec_error *err)
{
    struct tenrec_value *ret = NULL;
    struct order o;
    tenrec_status st = read_order(word, n, &o, err);

    if (st == TENREC_OK)
        st = tenrec_rpc_sync(worker, word[0], word[1], o.arg, o.n, &o.options, &ret, err);
    if (st == TENREC_OK)
        say_value(ret);
    tenrec_value_drop(ret);
    return st;
}

/* "tensor TO MS COUNT": has so many numbers doubled, and checks each. */
static tenrec_status do_tensor(char **word, size_t n, tenrec_error *err)
{
    int64_t count = strtoll(word_or(word, n, 2, "1"), NULL, 10);
    tenrec_status st = exchange_tensor(worker, word_or(word, n, 0, ""), count,
                                       strtoll(word_or(word, n, 1, "0"), NULL, 10), err);

    if (st == TENREC_OK)
        say("ok %" PRId64, count);
    return st;
}

struct info {
    char end[64]; /* of the key */
    char value[160];
};

static void on_info(void *arg, const char *key, const char *value)
{
    struct info *info = arg;
    const size_t len = strlen(key), end = strlen(info->end);

    if (len >= end && strcmp(key + len - end, info->end) == 0)
        snprintf(info->value, sizeof info->value, "%s", value);
}

/* The debug info whose key has this end. */
TENREC_PRINTF(1, 2)
static struct info info_find(const char *fmt, ...)
{
    struct info info = { .value = "none" };
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(info.end, sizeof info.end, fmt, ap);
    va_end(ap);
    debug_info_each(worker, on_info, &info);
    return info;
}

/* "way ID": by which transport and channel calls go to that member. */
static tenrec_status do_way(char **word, size_t n, tenrec_error *err)
{
    const char *id = word_or(word, n, 0, "");
    const struct info transport = info_find(".peer.%s.transport", id);
    const struct info channel = info_find(".peer.%s.channel", id);

    (void)err;
    say("ok %s %s", transport.value, channel.value);
    return TENREC_OK;
}

/* "info KEY": the debug info of this key, or of a longer one that ends with it. */
static tenrec_status do_info(char **word, size_t n, tenrec_error *err)
{
    const struct info info = info_find("%s", word_or(word, n, 0, ""));

    (void)err;
    say("ok %s", info.value);
    return TENREC_OK;
}

/* "exchange ROUNDS" */
static tenrec_status do_exchange(char **word, size_t n, tenrec_error *err)
{
    int calls;
    tenrec_status st = exchange_all(worker, atoi(word_or(word, n, 0, "1")), &calls, err);

    if (st == TENREC_OK)
        say("ok %d", calls);
    return st;
}

/* "barrier MS [NAME ...]": without names a barrier of all members. */
static tenrec_status do_barrier(char **word, size_t n, tenrec_error *err)
{
    const int64_t ms = strtoll(word_or(word, n, 0, "0"), NULL, 10);
    const char *const *names = (const char *const *)(word + 1);
    tenrec_status st =
        tenrec_worker_barrier(worker, n > 1 ? names : NULL, n > 1 ? n - 1 : 0, ms, err);

    if (st == TENREC_OK)
        say("ok");
    return st;
}

/* "view": the names of the members. */
static tenrec_status do_view(char **word, size_t n, tenrec_error *err)
{
    struct tenrec_group_view *v = NULL;
    char text[900] = "";
    size_t at = 0;
    tenrec_status st = tenrec_group_view_get(worker, &v, err);

    (void)word, (void)n;
    if (st != TENREC_OK)
        return st;
    for (uint32_t i = 0; i < v->n && at < sizeof text; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, " %s", v->member[i].name);
    say("ok%s", text);
    tenrec_group_view_drop(v);
    return TENREC_OK;
}

/* "members COUNT MS": waits for so many at least. */
static tenrec_status do_members(char **word, size_t n, tenrec_error *err)
{
    tenrec_status st = tenrec_group_wait_members(worker, (size_t)atoi(word_or(word, n, 0, "0")),
                                                 strtoll(word_or(word, n, 1, "0"), NULL, 10), err);

    if (st == TENREC_OK)
        say("ok");
    return st;
}

static tenrec_status do_held(char **word, size_t n, tenrec_error *err)
{
    (void)word, (void)n, (void)err;
    say("ok %d", exchange_held());
    return TENREC_OK;
}

static tenrec_status do_release(char **word, size_t n, tenrec_error *err)
{
    (void)word, (void)n, (void)err;
    say("ok %d", exchange_release());
    return TENREC_OK;
}

/* "shutdown graceful|immediate MS" */
static tenrec_status do_shutdown(char **word, size_t n, tenrec_error *err)
{
    enum tenrec_shutdown_mode mode =
        strcmp(word_or(word, n, 0, ""), "immediate") == 0 ? TENREC_IMMEDIATE : TENREC_GRACEFUL;
    tenrec_status st =
        tenrec_shutdown(worker, mode, strtoll(word_or(word, n, 1, "0"), NULL, 10), err);

    if (st == TENREC_OK)
        say("ok");
    return st;
}

static tenrec_status do_drop(char **word, size_t n, tenrec_error *err)
{
    (void)word, (void)n, (void)err;
    tenrec_worker_drop(worker);
    worker = NULL;
    say("ok");
    return TENREC_OK;
}

/* "serve PORT": serves a store. */
static tenrec_status do_serve(char **word, size_t n, tenrec_error *err)
{
    const uint16_t port = (uint16_t)strtol(word_or(word, n, 0, "0"), NULL, 10);
    tenrec_status st = tenrec_store_server_new("127.0.0.1", port, &server, NULL, err);

    if (st == TENREC_OK)
        say("ok");
    return st;
}

static void say_hello(void);
static void open_term_pipe(void);

/* "fork": the child is a puppet of its own. */
static tenrec_status do_fork(char **word, size_t n, tenrec_error *err)
{
    pid_t pid;

    (void)word, (void)n;
    pthread_mutex_lock(&control_lock);
    pid = fork();
    pthread_mutex_unlock(&control_lock);
    if (pid < 0)
        return tenrec_fail_errno(err, TENREC_EOS, errno, "fork");
    if (pid > 0) {
        say("ok %d", (int)pid);
        return TENREC_OK;
    }
    /* Never used here, also not to drop it. */
    parents = worker;
    worker = NULL;
    close(term_pipe[0]);
    close(term_pipe[1]);
    open_term_pipe();
    say_hello();
    return TENREC_OK;
}

/* "exit STATUS": ends as a program does that has forgotten its worker. */
static tenrec_status do_exit(char **word, size_t n, tenrec_error *err)
{
    (void)err;
    say("ok");
    exit(atoi(word_or(word, n, 0, "0")));
}

static void run_command(char *line)
{
    static const struct {
        const char *name;
        command_fn *run;
        bool needs_worker;
    } all[] = {
        { "init", do_init, false },       { "again", do_again, true },
        { "start", do_start, true },      { "await", do_await, true },
        { "call", do_call, true },        { "exchange", do_exchange, true },
        { "barrier", do_barrier, true },  { "held", do_held, false },
        { "release", do_release, false }, { "shutdown", do_shutdown, true },
        { "drop", do_drop, false },       { "serve", do_serve, false },
        { "fork", do_fork, false },       { "exit", do_exit, false },
        { "tensor", do_tensor, true },    { "way", do_way, true },
        { "view", do_view, true },        { "members", do_members, true },
        { "info", do_info, true },
    };
    char *word[WORDS_MAX + 1], *save = NULL;
    tenrec_error err = { 0 };
    tenrec_status st = TENREC_EINVAL;
    size_t n = 0;

    for (char *w = strtok_r(line, " ", &save); w && n <= WORDS_MAX; w = strtok_r(NULL, " ", &save))
        word[n++] = w;
    tenrec_fail(&err, st, "no such command");
    for (size_t i = 0; i < sizeof all / sizeof all[0] && n > 0; i++) {
        if (strcmp(word[0], all[i].name) != 0)
            continue;
        if (all[i].needs_worker && !worker)
            tenrec_fail(&err, st, "there is no worker");
        else
            st = all[i].run(word + 1, n - 1, &err);
        break;
    }
    if (st != TENREC_OK)
        say_fail(st, &err);
}

/* ---- its life ------------------------------------------------------------- */

static void say_hello(void)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    const char *rank = getenv("RANK");
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(to.sun_path, sizeof to.sun_path, "%s", control_path);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&to, sizeof to)) {
        fprintf(stderr, "puppet: cannot connect to '%s': %s\n", control_path, strerror(errno));
        exit(3);
    }
    if (control >= 0)
        close(control);
    control = fd;
    say("hello %s %d", rank ? rank : "-1", (int)getpid());
}

static void on_term(int sig)
{
    int saved = errno;

    (void)sig;
    (void)!write(term_pipe[1], "", 1);
    errno = saved;
}

static void leave(void)
{
    tenrec_error err = { 0 };
    tenrec_status st = TENREC_OK;

    if (worker && tenrec_worker_running(worker))
        st = tenrec_shutdown(worker, TENREC_GRACEFUL, LEAVE_MS, &err);
    tenrec_worker_drop(worker);
    if (st != TENREC_OK)
        fprintf(stderr, "%s\n", err.text);
    exit(st == TENREC_OK ? 0 : 1);
}

static void open_term_pipe(void)
{
    if (pipe2(term_pipe, O_CLOEXEC | O_NONBLOCK)) {
        fprintf(stderr, "puppet: %s\n", strerror(errno));
        exit(3);
    }
}

static void set_signal(const char *how)
{
    struct sigaction act = { 0 };

    if (strcmp(how, "ignore") == 0)
        act.sa_handler = SIG_IGN;
    else if (strcmp(how, "handle") == 0)
        act.sa_handler = on_term;
    else
        act.sa_handler = SIG_DFL;
    sigaction(SIGTERM, &act, NULL);
}

/* Reads a line; NULL when the test is gone. */
static char *read_line(void)
{
    static char buf[LINE_MAX_BYTES];
    static size_t have;
    static size_t used;
    char *end;

    memmove(buf, buf + used, have -= used);
    used = 0;
    while (!(end = memchr(buf, '\n', have))) {
        struct pollfd p[] = { { .fd = control, .events = POLLIN },
                              { .fd = term_pipe[0], .events = POLLIN } };
        ssize_t n;
        if (poll(p, 2, -1) < 0)
            continue;
        if (p[1].revents)
            leave();
        n = recv(control, buf + have, sizeof buf - have, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            return NULL;
        have += n > 0 ? (size_t)n : 0;
    }
    *end = '\0';
    used = (size_t)(end - buf) + 1;
    return buf;
}

int main(int argc, char **argv)
{
    char *line;

    if (argc < 2) {
        fprintf(stderr, "usage: puppet SOCKET [default|ignore|handle]\n");
        return 2;
    }
    control_path = argv[1];
    open_term_pipe();
    set_signal(argc > 2 ? argv[2] : "default");
    say_hello();
    while ((line = read_line()))
        run_command(line);
    tenrec_worker_drop(worker);
    tenrec_store_server_drop(server);
    /* Leak checkers would search the threads of the parent in here, and for its memory that
     * fork has left out, word by word. */
    if (parents)
        raise(SIGKILL);
    return 0;
}
