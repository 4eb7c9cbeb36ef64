/* SPDX-License-Identifier: Apache-2.0 */
/* trace.c - a backend that wraps any other and writes a line per message.
 *
 * A line is one write, and only when the write cannot block: lines that the reader of a pipe or a
 * terminal has no room for are counted, and the next line that fits reports their number. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <tenrec/plugin.h>
#include <time.h>
#include <unistd.h>

#define NAME_ESCAPED_MAX (4 * TENREC_NAME_MAX + 1) /* \xHH for each byte */
#define LINE_ROOM 1536                             /* below PIPE_BUF: no other line gets inside */

struct trace_options {
    const char *file; /* "": stderr */
    const char *direction;
    struct tenrec_option_list types, peers; /* empty: all */
};

struct trace {
    const struct trace_options *opt;
    struct tenrec_agent_ops ops;          /* without the direction that is not traced */
    bool to_socket, to_file;              /* a regular one */
    int fd;                               /* owns */
    char own_name[2 * TENREC_NAME_MAX];   /* "worker0/trace" */
    atomic_ulong lines, lost, unreported; /* unreported: lost since a line was last written */
    atomic_bool torn;                     /* the last write ended inside a line */
};

/* ---- options ------------------------------------------------------------------- */

#define TYPE_CHOICE(name, number) "|" #name
#define AT(field) offsetof(struct trace_options, field)
static const struct tenrec_option options[] = {
    { .key = "file",
      .type = TENREC_OPT_STRING,
      .offset = AT(file),
      .def = "",
      .help = "File to which lines are appended, made with mode 0600, and no link; by default "
              "stderr." },
    { .key = "direction",
      .type = TENREC_OPT_STRING,
      .offset = AT(direction),
      .def = "both",
      .choices = "both|out|in",
      .help = "Messages that have a line: sent, received, or both." },
    { .key = "types",
      .type = TENREC_OPT_LIST,
      .item = TENREC_OPT_STRING,
      .offset = AT(types),
      .def = "[]",
      .choices = "REQUEST|RESPONSE" TENREC_MSG_TYPE_MAP(TYPE_CHOICE),
      .help = "Types of messages that have a line; none means all." },
    { .key = "peers",
      .type = TENREC_OPT_LIST,
      .item = TENREC_OPT_INT,
      .offset = AT(peers),
      .def = "[]",
      .min = TENREC_ANONYMOUS,
      .max = INT16_MAX,
      .help = "Ranks of workers whose messages have a line, -1 for callers that are no members; "
              "none means all." },
};

const struct tenrec_plugin tenrec_plugin = {
    TENREC_PLUGIN_HEADER,
    TENREC_PLUGIN_OPTIONS(options, struct trace_options),
    .flags = TENREC_PLUGIN_WRAPS | TENREC_PLUGIN_UNLOADABLE | TENREC_PLUGIN_SETUID,
    .name = "trace",
    .version = "1.0",
    .summary = "Wraps any agent and writes a line per message.",
};

tenrec_status tenrec_construct_options(void *opts, tenrec_error *err)
{
    (void)opts, (void)err; /* no rule spans several options */
    return TENREC_OK;
}

/* ---- lines --------------------------------------------------------------------- */

static bool trace_wants(const struct trace_options *o, tenrec_peer peer, int32_t type)
{
    const char *name = tenrec_msg_type_name(type);
    bool wanted = o->types.n == 0, known = o->peers.n == 0;

    for (size_t i = 0; i < o->types.n && !wanted; i++) {
        const char *word = o->types.v[i].s;
        wanted = (name && strcmp(word, name) == 0) ||
                 (strcmp(word, "REQUEST") == 0 && (type & TENREC_MSG_REQUEST_BIT)) ||
                 (strcmp(word, "RESPONSE") == 0 && (type & TENREC_MSG_RESPONSE_BIT));
    }
    for (size_t i = 0; i < o->peers.n && !known; i++)
        known = o->peers.v[i].i == peer;
    return wanted && known;
}

/* Returns true if a write to a file would raise SIGXFSZ, which ends the process. */
static bool trace_is_full(const struct trace *t, size_t len)
{
    struct rlimit limit;
    struct stat st;

    return t->to_file && getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
           fstat(t->fd, &st) == 0 && (uint64_t)st.st_size + len > limit.rlim_cur;
}

static bool trace_write(struct trace *t, const char *line, size_t len)
{
    struct pollfd p = { .fd = t->fd, .events = POLLOUT };
    ssize_t n = -1;

    if (t->to_socket)
        n = send(t->fd, line, len, MSG_DONTWAIT | MSG_NOSIGNAL);
    else if (trace_is_full(t, len))
        return false;
    else if (poll(&p, 1, 0) == 1 && p.revents == POLLOUT) /* with POLLERR a write raises SIGPIPE */
        n = write(t->fd, line, len);
    if (n > 0)
        atomic_store(&t->torn, (size_t)n < len);
    return n == (ssize_t)len;
}

/* Adds what every line has: the line feed of a cut line, lost lines, time, worker. */
TENREC_PRINTF(2, 3)
static void trace_line(struct trace *t, const char *fmt, ...)
{
    const unsigned long unreported = atomic_exchange(&t->unreported, 0);
    char text[1024], missed[64] = "", line[LINE_ROOM];
    struct timespec now;
    va_list ap;
    int n;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (unreported)
        snprintf(missed, sizeof missed, "# %lu lines were left out\n", unreported);
    clock_gettime(CLOCK_MONOTONIC, &now);
    n = snprintf(line, sizeof line, "%s%s%lld.%09ld %s %s\n", atomic_load(&t->torn) ? "\n" : "",
                 missed, (long long)now.tv_sec, now.tv_nsec, t->own_name, text);
    if (trace_write(t, line, (size_t)n)) {
        atomic_fetch_add(&t->lines, 1);
        return;
    }
    atomic_fetch_add(&t->lost, 1);
    atomic_fetch_add(&t->unreported, unreported + 1);
}

static void trace_message(struct trace *t, const char *way, tenrec_peer peer,
                          const struct tenrec_msg *msg)
{
    const char *type = tenrec_msg_type_name(msg->type);
    char number[16];

    if (!trace_wants(t->opt, peer, msg->type))
        return;
    snprintf(number, sizeof number, "0x%x", (unsigned)msg->type);
    trace_line(t, "%s %s peer %d id %lld payload %llu tensors %u of %llu route %llu.%llu", way,
               type ? type : number, (int)peer, (long long)msg->id,
               (unsigned long long)msg->payload_len, (unsigned)msg->n_tensors,
               (unsigned long long)(tenrec_msg_bytes(msg) - msg->payload_len),
               (unsigned long long)msg->route.pipe, (unsigned long long)msg->route.generation);
}

static void trace_send(struct tenrec_agent *self, tenrec_peer to, struct tenrec_msg *msg,
                       struct tenrec_done done)
{
    trace_message(self->impl, "out", to, msg);
    self->host->send_inner(self, to, msg, done);
}

static void trace_deliver(struct tenrec_agent *self, tenrec_peer from, struct tenrec_msg *msg)
{
    trace_message(self->impl, "in", from, msg);
    self->host->deliver_outer(self, from, msg);
}

/* ---- life ---------------------------------------------------------------------- */

/* The name is another process's word. */
static void trace_member_joined(struct tenrec_agent *self, const struct tenrec_member *member)
{
    char name[NAME_ESCAPED_MAX];

    tenrec_text_escape(name, sizeof name, member->name, "");
    trace_line(self->impl, "member %d name %s", (int)member->id, name);
}

static tenrec_status trace_start(struct tenrec_agent *self, const struct tenrec_member *member,
                                 uint32_t n, tenrec_error *err)
{
    (void)err;
    for (uint32_t i = 0; i < n; i++) {
        trace_member_joined(self, member);
        member = (const void *)((const char *)member + member->size);
    }
    return TENREC_OK;
}

static void trace_destroy(struct tenrec_agent *self)
{
    struct trace *t = self->impl;

    if (t->fd >= 0)
        close(t->fd);
    free(t);
}

static void trace_debug_info(struct tenrec_agent *self, tenrec_sink_fn *sink, void *arg)
{
    struct trace *t = self->impl;

    tenrec_sink_number(sink, arg, "lines", atomic_load(&t->lines));
    tenrec_sink_number(sink, arg, "lost_lines", atomic_load(&t->lost));
}

/* A pipe or a terminal is opened once more: O_NONBLOCK on the inherited descriptor would change
 * it for all processes that share it. */
static int trace_open_stderr(void)
{
    struct stat st;
    int fd = -1;

    if (fstat(STDERR_FILENO, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode)))
        fd = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    return fd >= 0 ? fd : fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
}

/* In a folder of several users another user may have made the file, or a link, first. */
static tenrec_status trace_open(struct trace *t, const char *path, tenrec_error *err)
{
    const int flags = O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW;
    struct stat st;

    t->fd = *path ? open(path, flags | O_CLOEXEC, 0600) : trace_open_stderr();
    if (t->fd < 0 || fstat(t->fd, &st))
        return tenrec_fail_errno(err, TENREC_EOS, errno, "cannot open file '%s'%s",
                                 *path ? path : "stderr", errno == ELOOP ? ", a link" : "");
    t->to_socket = S_ISSOCK(st.st_mode);
    t->to_file = S_ISREG(st.st_mode);
    if (!*path || S_ISCHR(st.st_mode) ||
        (st.st_uid == geteuid() && (S_ISFIFO(st.st_mode) || st.st_nlink == 1)))
        return TENREC_OK;
    return tenrec_fail(err, TENREC_EPERM,
                       "file '%s' belongs to another user or has two names: choose another file",
                       path);
}

tenrec_status tenrec_init_agent(const struct tenrec_init *in, struct tenrec_agent *self,
                                tenrec_error *err)
{
    struct trace *t = calloc(1, sizeof *t);
    tenrec_status st;

    if (!t)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the trace agent");
    t->opt = in->options;
    snprintf(t->own_name, sizeof t->own_name, "%s/%s", *in->name ? in->name : "caller",
             in->backend);
    self->impl = t;
    st = trace_open(t, t->opt->file, err);
    if (st != TENREC_OK) {
        trace_destroy(self);
        return st;
    }
    t->ops = (struct tenrec_agent_ops){
        .size = sizeof t->ops,
        .start = trace_start,
        .member_joined = trace_member_joined,
        .send = strcmp(t->opt->direction, "in") ? trace_send : NULL,
        .deliver = strcmp(t->opt->direction, "out") ? trace_deliver : NULL,
        .destroy = trace_destroy,
        .debug_info = trace_debug_info,
    };
    self->ops = &t->ops;
    return TENREC_OK;
}
