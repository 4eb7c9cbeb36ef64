/* SPDX-License-Identifier: Apache-2.0 */
/* context.c - a context, a worker and a listener of UCX, as the options say. */
#include "conn.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { REFUSAL_MS = 100 };

static tenrec_status context_fail(tenrec_error *err, ucs_status_t st, const char *what)
{
    return tenrec_fail(err, st == UCS_ERR_NO_MEMORY ? TENREC_ENOMEM : TENREC_EOS, "UCX: %s: %s",
                       what, ucs_status_string(st));
}

/* Like Tenrec's own variables, those of UCX override the file. */
static bool is_in_environment(const char *name)
{
    char variable[64];

    snprintf(variable, sizeof variable, "UCX_%s", name);
    return secure_getenv(variable) != NULL;
}

static tenrec_status set_one(ucp_config_t *config, const char *name, const char *value,
                             tenrec_error *err)
{
    ucs_status_t st = ucp_config_modify(config, name, value);

    return st == UCS_OK
               ? TENREC_OK
               : tenrec_fail(err, TENREC_ECONFIG, "UCX does not accept \"%s\" as UCX_%s: %s", value,
                             name, ucs_status_string(st));
}

static tenrec_status set_list(ucp_config_t *config, const char *name,
                              const struct tenrec_option_list *list, tenrec_error *err)
{
    char value[512];
    size_t used = 0;

    if (list->n == 0 || is_in_environment(name))
        return TENREC_OK;
    for (size_t i = 0; i < list->n; i++) {
        int n = snprintf(value + used, sizeof value - used, "%s%s", i ? "," : "", list->v[i].s);

        if ((size_t)n >= sizeof value - used)
            return tenrec_fail(err, TENREC_ECONFIG, "the list for UCX_%s is above %zu bytes", name,
                               sizeof value);
        used += (size_t)n;
    }
    return set_one(config, name, value, err);
}

/* UCX prints warnings and errors of each broken connection; the plugin reports them. */
static tenrec_status set_log_level(ucp_config_t *config, tenrec_error *err)
{
    return is_in_environment("LOG_LEVEL") ? TENREC_OK : set_one(config, "LOG_LEVEL", "fatal", err);
}

/* Over TCP UCX leaves this to the kernel: a probe after the idle time, and more until as much time
 * has passed again, 3 s at least. The kernel counts in seconds. */
static tenrec_status set_tcp_keepalive(ucp_config_t *config, uint64_t ms, tenrec_error *err)
{
    const uint64_t idle_s = ms < 1000 ? 1 : ms / 1000, step_s = idle_s < 3 ? 1 : idle_s / 3;
    char idle[32] = "inf", step[32] = "inf";
    tenrec_status st = TENREC_OK;

    if (ms != TENREC_FOREVER) {
        snprintf(idle, sizeof idle, "%llus", (unsigned long long)idle_s);
        snprintf(step, sizeof step, "%llus", (unsigned long long)step_s);
    }
    if (!is_in_environment("TCP_KEEPIDLE"))
        st = set_one(config, "KEEPIDLE", idle, err);
    if (st == TENREC_OK && !is_in_environment("TCP_KEEPINTVL"))
        st = set_one(config, "KEEPINTVL", step, err);
    if (st == TENREC_OK && !is_in_environment("TCP_KEEPCNT"))
        st = set_one(config, "KEEPCNT", "3", err);
    return st;
}

/* UCX 1.13 aborts the process when an acknowledgement of its TCP's PUT meets the end of a
 * connection. Where a transport has no GET, data of rendezvous travels in active messages. */
static tenrec_status set_rendezvous(ucp_config_t *config, tenrec_error *err)
{
    return is_in_environment("RNDV_SCHEME") ? TENREC_OK
                                            : set_one(config, "RNDV_SCHEME", "get_zcopy", err);
}

static tenrec_status set_all(const struct ucx_options *o, ucp_config_t *config, bool loopback,
                             tenrec_error *err)
{
    char text[32];
    tenrec_status st = set_list(config, "TLS", &o->tls, err);

    /* UCX's TCP listens at every device that it may use. */
    if (st == TENREC_OK && loopback)
        st = set_one(config, "NET_DEVICES", "lo", err);
    else if (st == TENREC_OK)
        st = set_list(config, "NET_DEVICES", &o->devices, err);
    if (st == TENREC_OK && o->rndv_threshold_bytes && !is_in_environment("RNDV_THRESH")) {
        snprintf(text, sizeof text, "%llu", (unsigned long long)o->rndv_threshold_bytes);
        st = set_one(config, "RNDV_THRESH", text, err);
    }
    if (st == TENREC_OK && !is_in_environment("KEEPALIVE_INTERVAL")) {
        if (o->keepalive_ms == TENREC_FOREVER)
            snprintf(text, sizeof text, "inf");
        else
            snprintf(text, sizeof text, "%llums", (unsigned long long)o->keepalive_ms);
        st = set_one(config, "KEEPALIVE_INTERVAL", text, err);
    }
    if (st == TENREC_OK)
        st = set_tcp_keepalive(config, o->keepalive_ms, err);
    if (st == TENREC_OK)
        st = set_rendezvous(config, err);
    return st == TENREC_OK ? set_log_level(config, err) : st;
}

static tenrec_status config_read(ucp_config_t **ret, tenrec_error *err)
{
    const ucs_status_t st = ucp_config_read(NULL, NULL, ret);

    return st == UCS_OK ? TENREC_OK : context_fail(err, st, "cannot read the UCX_ variables");
}

tenrec_status context_config(const struct ucx_options *o, bool loopback, ucp_config_t **ret,
                             tenrec_error *err)
{
    tenrec_status st = config_read(ret, err);

    if (st != TENREC_OK)
        return st;
    st = set_all(o, *ret, loopback, err);
    if (st != TENREC_OK)
        ucp_config_release(*ret);
    return st;
}

tenrec_status context_config_all(ucp_config_t **ret, tenrec_error *err)
{
    tenrec_status st = config_read(ret, err);

    if (st != TENREC_OK)
        return st;
    st = set_one(*ret, "TLS", "all", err);
    if (st == TENREC_OK)
        st = set_one(*ret, "NET_DEVICES", "all", err);
    if (st == TENREC_OK)
        st = set_log_level(*ret, err);
    if (st != TENREC_OK)
        ucp_config_release(*ret);
    return st;
}

tenrec_status context_init(const ucp_config_t *config, ucp_context_h *ret, tenrec_error *err)
{
    const ucp_params_t params = { .field_mask = UCP_PARAM_FIELD_FEATURES,
                                  .features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP };
    const ucs_status_t st = ucp_init(&params, config, ret);

    return st == UCS_OK ? TENREC_OK
                        : context_fail(err, st, "no transport can be opened with these options");
}

static tenrec_status open_worker(struct ucx *u, tenrec_error *err)
{
    const ucp_worker_params_t worker = { .field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                         .thread_mode = UCS_THREAD_MODE_SERIALIZED };
    ucs_status_t st = ucp_worker_create(u->context, &worker, &u->worker);

    if (st != UCS_OK) {
        u->worker = NULL;
        return context_fail(err, st, "cannot make a worker");
    }
    st = ucp_worker_get_efd(u->worker, &u->event_fd);
    if (st == UCS_OK)
        return TENREC_OK;
    u->event_fd = -1;
    if (u->how == WAIT_BUSY)
        return TENREC_OK;
    return context_fail(err, st,
                        "these transports cannot wake a thread that sleeps; set progress: busy");
}

static tenrec_status open_descriptors(struct ucx *u, tenrec_error *err)
{
    u->own_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    u->guest_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    u->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (u->own_fd >= 0 && u->guest_fd >= 0 && u->epoll_fd >= 0)
        return TENREC_OK;
    return tenrec_fail_errno(err, TENREC_EOS, errno, "cannot make the descriptors of an agent");
}

static tenrec_status watch_descriptors(struct ucx *u, tenrec_error *err)
{
    struct epoll_event own = { .events = EPOLLIN, .data.fd = u->own_fd };
    struct epoll_event event = { .events = EPOLLIN, .data.fd = u->event_fd };

    u->watched = true;
    if (epoll_ctl(u->epoll_fd, EPOLL_CTL_ADD, u->own_fd, &own) == 0 &&
        (u->event_fd < 0 || epoll_ctl(u->epoll_fd, EPOLL_CTL_ADD, u->event_fd, &event) == 0))
        return TENREC_OK;
    return tenrec_fail_errno(err, TENREC_EOS, errno, "cannot wait for UCX's events");
}

void context_close_descriptors(struct ucx *u)
{
    const int fd[] = { u->own_fd, u->guest_fd, u->epoll_fd };

    for (size_t i = 0; i < sizeof fd / sizeof fd[0]; i++)
        if (fd[i] >= 0)
            close(fd[i]);
}

size_t context_sockaddr(const char *address, void *ret)
{
    struct sockaddr_in *v4 = ret;
    struct sockaddr_in6 *v6 = ret;
    char host[UCX_TEXT], *end;
    const char *at, *colon;
    unsigned long port;
    size_t len;

    if (strncmp(address, "ucx://", 6) != 0)
        return 0;
    at = address + 6;
    colon = strrchr(at, ':');
    if (!colon || colon == at)
        return 0;
    errno = 0;
    port = strtoul(colon + 1, &end, 10);
    if (errno || *end || end == colon + 1 || port > 65535)
        return 0;
    len = (size_t)(colon - at);
    if (at[0] == '[' && len > 2 && at[len - 1] == ']')
        at++, len -= 2;
    if (len >= sizeof host)
        return 0;
    memcpy(host, at, len);
    host[len] = '\0';
    memset(ret, 0, sizeof(struct sockaddr_storage));
    if (inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons((uint16_t)port);
        return sizeof *v4;
    }
    if (inet_pton(AF_INET6, host, &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons((uint16_t)port);
        return sizeof *v6;
    }
    return 0;
}

void context_check_refused(const char *address, tenrec_error *why)
{
    struct sockaddr_storage to;
    const socklen_t len = (socklen_t)context_sockaddr(address, &to);
    struct pollfd fd = { .events = POLLOUT };
    int code = 0;
    socklen_t code_len = sizeof code;

    /* A listener of UCX listens with TCP, too, at the same port. */
    fd.fd = len ? socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0) : -1;
    if (fd.fd < 0)
        return;
    if (connect(fd.fd, (const struct sockaddr *)&to, len) != 0)
        code = errno;
    if (code == EINPROGRESS && (poll(&fd, 1, REFUSAL_MS) != 1 ||
                                getsockopt(fd.fd, SOL_SOCKET, SO_ERROR, &code, &code_len) != 0))
        code = 0;
    close(fd.fd);
    if (code == ECONNREFUSED)
        why->os_errno = code;
}

bool context_is_loopback(const char *host)
{
    return strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0;
}

static tenrec_status open_listener(struct ucx *u, const char *host, tenrec_error *err)
{
    const char *open = strchr(host, ':') ? "[" : "", *close = *open ? "]" : "";
    struct sockaddr_storage at;
    ucp_listener_params_t params = {
        .field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER,
        .conn_handler = { conn_accept, u },
    };
    ucp_listener_attr_t attr = { .field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR };
    ucs_status_t st;

    snprintf(u->address, sizeof u->address, "ucx://%s%s%s:0", open, host, close);
    params.sockaddr.addrlen = (socklen_t)context_sockaddr(u->address, &at);
    params.sockaddr.addr = (const struct sockaddr *)&at;
    if (params.sockaddr.addrlen == 0)
        return tenrec_fail(err, TENREC_ECONFIG, "listen: \"%s\" is no IP address", host);
    st = ucp_listener_create(u->worker, &params, &u->listener);
    if (st == UCS_OK)
        st = ucp_listener_query(u->listener, &attr);
    if (st != UCS_OK) {
        char what[UCX_TEXT];

        snprintf(what, sizeof what, "cannot listen on %s", host);
        return context_fail(err, st, what);
    }
    snprintf(u->address, sizeof u->address, "ucx://%s%s%s:%u", open, host, close,
             ntohs(attr.sockaddr.ss_family == AF_INET6
                       ? ((const struct sockaddr_in6 *)&attr.sockaddr)->sin6_port
                       : ((const struct sockaddr_in *)&attr.sockaddr)->sin_port));
    return TENREC_OK;
}

/* The contexts of this process, and of its parent when it forked. */
static pthread_mutex_t uses_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned uses;
static pid_t uses_of;

/* UCX's own thread serves the sockets of listeners; a child that was forked while a context was
 * open has UCX's memory of it only. */
static tenrec_status use_begin(struct ucx *u, tenrec_error *err)
{
    pid_t before;

    pthread_mutex_lock(&uses_lock);
    before = uses ? uses_of : getpid();
    u->uses = before == getpid();
    uses += u->uses;
    uses_of = before;
    pthread_mutex_unlock(&uses_lock);
    if (u->uses)
        return TENREC_OK;
    return tenrec_fail(err, TENREC_EUNSUPPORTED,
                       "backend ucx was in use in process %d when it forked this one; UCX does not "
                       "work in such a child: start a new program, or use backend tensorpipe there",
                       (int)before);
}

static void use_end(struct ucx *u)
{
    pthread_mutex_lock(&uses_lock);
    uses -= u->uses;
    u->uses = false;
    pthread_mutex_unlock(&uses_lock);
}

tenrec_status context_open(struct ucx *u, const char *host_address, tenrec_error *err)
{
    const char *host = *u->opt->listen ? u->opt->listen
                       : *host_address ? host_address
                                       : "127.0.0.1";
    tenrec_status st = use_begin(u, err);
    ucp_config_t *config;

    if (st != TENREC_OK)
        return st;
    st = open_descriptors(u, err);
    if (st != TENREC_OK)
        return st;
    /* A tool cannot determine on which hosts its peers run. */
    st = context_config(u->opt, u->me != TENREC_ANONYMOUS && context_is_loopback(host), &config,
                        err);
    if (st != TENREC_OK)
        return st;
    st = context_init(config, &u->context, err);
    ucp_config_release(config);
    if (st != TENREC_OK)
        u->context = NULL;
    if (st == TENREC_OK)
        st = open_worker(u, err);
    if (st == TENREC_OK)
        st = watch_descriptors(u, err);
    if (st == TENREC_OK)
        st = receive_open(u, err);
    if (st == TENREC_OK && u->me != TENREC_ANONYMOUS)
        st = open_listener(u, host, err);
    return st;
}

void context_close(struct ucx *u)
{
    if (u->listener)
        listener_close(u);
    if (u->worker)
        ucp_worker_destroy(u->worker);
    if (u->context)
        ucp_cleanup(u->context);
    use_end(u);
    u->worker = NULL;
    u->context = NULL;
}
