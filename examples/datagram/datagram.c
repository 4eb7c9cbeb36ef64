/* SPDX-License-Identifier: Apache-2.0 */
/* datagram.c - a backend over Unix datagrams, between the processes of one host: an example that
 * needs nothing but the installed headers.
 *
 * An agent has two sockets: one receives requests, and is not read while the worker's queue is
 * full; the other receives answers, and sends everything, so that the source of a datagram names
 * its sender. The kernel keeps the order, loses nothing, and refuses a datagram to a socket that is
 * gone. One thread does all of it; `send` only queues. */
#include "datagram.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

enum { LOOK_MS = 100, RETRY_MS = 1 };

/* ---- the thread ---------------------------------------------------------------------- */

static void *datagram_run(void *agent)
{
    struct datagram *d = agent;
    uint64_t looked_ns = tenrec_now_ns();

    while (!atomic_load(&d->stopping)) {
        const bool more = send_all(d), accepts = d->self->host->accepts(d->self);
        struct pollfd fd[] = { { d->wake_fd, POLLIN, 0 },
                               { d->fd[ANSWERS], POLLIN, 0 },
                               { accepts ? d->fd[REQUESTS] : -1, POLLIN, 0 } };
        eventfd_t wakes;

        poll(fd, 3, more ? RETRY_MS : LOOK_MS);
        if (fd[0].revents)
            eventfd_read(d->wake_fd, &wakes);
        for (int i = 0; i < 64 && fd[1].revents && receive_one(d, ANSWERS); i++)
            continue;
        for (int i = 0;
             i < 64 && fd[2].revents && d->self->host->accepts(d->self) && receive_one(d, REQUESTS);
             i++)
            continue;
        if (tenrec_now_ns() - looked_ns > LOOK_MS * UINT64_C(1000000)) {
            send_questions(d);
            looked_ns = tenrec_now_ns();
        }
    }
    for (struct link *l; (l = link_after(d, NULL));)
        link_end(d, l, TENREC_ECANCELED, 0);
    return NULL;
}

/* ---- life ---------------------------------------------------------------------------- */

static const char *datagram_address(struct tenrec_agent *self)
{
    return ((struct datagram *)self->impl)->address;
}

static void datagram_left(struct tenrec_agent *self, tenrec_peer id)
{
    struct datagram *d = self->impl;
    struct member *m;

    pthread_mutex_lock(&d->lock);
    while ((m = member_find(d, id)))
        m->here = false;
    pthread_mutex_unlock(&d->lock);
}

static void datagram_joined(struct tenrec_agent *self, const struct tenrec_member *member)
{
    datagram_left(self, member->id);
    if (member_add(self->impl, member) != TENREC_OK)
        self->host->log(self, TENREC_LOG_ERROR, "no memory for member %d", (int)member->id);
}

static tenrec_status datagram_start(struct tenrec_agent *self, const struct tenrec_member *member,
                                    uint32_t n, tenrec_error *err)
{
    struct datagram *d = self->impl;

    for (uint32_t i = 0; i < n; i++) {
        if (member_add(d, member) != TENREC_OK)
            return tenrec_fail(err, TENREC_ENOMEM, "no memory for %u members", n);
        member = (const void *)((const char *)member + member->size);
    }
    if (pthread_create(&d->thread, NULL, datagram_run, d))
        return tenrec_fail(err, TENREC_EOS, "cannot start a thread");
    d->serving = true;
    return TENREC_OK;
}

static void datagram_resume(struct tenrec_agent *self)
{
    eventfd_write(((struct datagram *)self->impl)->wake_fd, 1);
}

static tenrec_status datagram_drain(struct tenrec_agent *self, uint32_t ms, tenrec_error *err)
{
    struct datagram *d = self->impl;
    const uint64_t until = tenrec_now_ns() + ms * UINT64_C(1000000);
    const struct timespec at = { (time_t)(until / 1000000000), (long)(until % 1000000000) };
    uint64_t left;
    int r = 0;

    pthread_mutex_lock(&d->lock);
    while (d->n_queued && r == 0)
        r = pthread_cond_timedwait(&d->idle, &d->lock, &at);
    left = d->n_queued;
    pthread_mutex_unlock(&d->lock);
    return left ? tenrec_fail(err, TENREC_ETIMEDOUT, "%llu messages are still queued",
                              (unsigned long long)left)
                : TENREC_OK;
}

static void datagram_close(struct datagram *d)
{
    for (int i = 0; i < N_SOCKETS; i++) {
        if (d->fd[i] >= 0)
            close(d->fd[i]);
        d->fd[i] = -1;
    }
}

/* The sockets end here: peers are refused from now on. */
static void datagram_shutdown(struct tenrec_agent *self)
{
    struct datagram *d = self->impl;

    pthread_mutex_lock(&d->lock);
    d->stopping = true;
    pthread_mutex_unlock(&d->lock);
    eventfd_write(d->wake_fd, 1);
    if (d->serving)
        pthread_join(d->thread, NULL);
    d->serving = false;
    datagram_close(d);
}

static void datagram_destroy(struct tenrec_agent *self)
{
    struct datagram *d = self->impl;

    datagram_close(d);
    if (d->wake_fd >= 0)
        close(d->wake_fd);
    pthread_cond_destroy(&d->idle);
    pthread_mutex_destroy(&d->lock);
    free(d->member);
    free(d);
}

static const struct tenrec_agent_ops datagram_ops = {
    .size = sizeof datagram_ops,
    .address = datagram_address,
    .start = datagram_start,
    .member_joined = datagram_joined,
    .member_left = datagram_left,
    .send = datagram_send,
    .resume = datagram_resume,
    .drain = datagram_drain,
    .shutdown = datagram_shutdown,
    .destroy = datagram_destroy,
};

static tenrec_status datagram_open(struct datagram *d, tenrec_error *err)
{
    unsigned char random[NAME_LEN / 2];
    char name[NAME_LEN + 1];
    struct sockaddr_un at;

    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return tenrec_fail_errno(err, TENREC_EOS, errno, "no random bytes");
    for (size_t i = 0; i < sizeof random; i++)
        snprintf(name + 2 * i, 3, "%02x", random[i]);
    snprintf(d->address, sizeof d->address, ADDRESS_PREFIX "%s", name);
    d->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    for (int i = 0; i < N_SOCKETS; i++) {
        const socklen_t len = address_of(name, i, &at);

        d->fd[i] = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (d->wake_fd < 0 || d->fd[i] < 0 || bind(d->fd[i], (struct sockaddr *)&at, len) != 0)
            return tenrec_fail_errno(err, TENREC_EOS, errno, "no socket");
    }
    return TENREC_OK;
}

tenrec_status tenrec_construct_options(void *opts, tenrec_error *err)
{
    (void)opts, (void)err; /* no rule spans several options */
    return TENREC_OK;
}

tenrec_status tenrec_init_agent(const struct tenrec_init *in, struct tenrec_agent *self,
                                tenrec_error *err)
{
    tenrec_status st = TENREC_REQUIRES(self->host, exception_new, err);
    pthread_condattr_t attr;
    struct datagram *d;

    if (st != TENREC_OK)
        return st;
    d = calloc(1, sizeof *d);
    if (!d)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the datagram agent");
    *d = (struct datagram){
        .self = self, .opt = in->options, .me = in->me, .fd = { -1, -1 }, .wake_fd = -1
    };
    pthread_mutex_init(&d->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&d->idle, &attr);
    pthread_condattr_destroy(&attr);
    self->impl = d;
    self->ops = &datagram_ops;
    st = datagram_open(d, err);
    if (st != TENREC_OK)
        datagram_destroy(self);
    return st;
}

static const struct tenrec_option options[] = {
    { .key = "max_message",
      .type = TENREC_OPT_SIZE,
      .offset = offsetof(struct datagram_options, max_message),
      .def = "1GiB",
      .help = "Largest message, payload and tensors together." },
    { .key = "max_queued_bytes",
      .type = TENREC_OPT_SIZE,
      .offset = offsetof(struct datagram_options, max_queued_bytes),
      .def = "256MiB",
      .help = "Bytes that may wait to be sent; a send beyond fails." },
};

const struct tenrec_plugin tenrec_plugin = {
    TENREC_PLUGIN_HEADER,
    TENREC_PLUGIN_OPTIONS(options, struct datagram_options),
    .flags = TENREC_PLUGIN_UNLOADABLE,
    .name = "datagram",
    .version = "1.0",
    .summary = "Carries messages between the processes of one host as Unix datagrams.",
};
