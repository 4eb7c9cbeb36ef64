/* SPDX-License-Identifier: Apache-2.0 */
#include "datagram.h"
#include "letter.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>

socklen_t address_of(const char *name, int which, struct sockaddr_un *ret)
{
    *ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                       (size_t)snprintf(ret->sun_path + 1, sizeof ret->sun_path - 1, "tenrec-%s-%d",
                                        name, which));
}

/* Queues a copy, so that the message may go. */
static tenrec_status queue_letter(struct datagram *d, tenrec_peer to, const struct tenrec_msg *msg,
                                  struct tenrec_done done, tenrec_error *err)
{
    const uint64_t total = letter_bytes(msg);
    struct outgoing *o;
    struct link *l;

    for (uint32_t i = 0; i < msg->n_tensors; i++)
        if (tenrec_msg_tensor(msg, i)->device.kind != TENREC_CPU)
            return tenrec_fail(err, TENREC_EUNSUPPORTED,
                               "datagram carries memory of the host only");
    if (total > d->opt->max_message)
        return tenrec_fail(err, TENREC_ETOOBIG, "a message of %llu bytes; max_message is %llu",
                           (unsigned long long)total, (unsigned long long)d->opt->max_message);
    o = malloc(sizeof *o + total);
    if (!o)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for %llu bytes",
                           (unsigned long long)total);
    *o = (struct outgoing){ .done = done, .total = total };
    letter_write(msg, o->bytes);
    pthread_mutex_lock(&d->lock);
    l = msg->route.generation ? link_by_route(d, msg->route) : link_to_peer(d, to);
    if (d->stopping)
        tenrec_fail(err, TENREC_ECANCELED, "the worker shuts down");
    else if (!l && msg->route.generation)
        tenrec_fail(err, TENREC_EPEER_LOST, "the caller has gone");
    else if (!l)
        tenrec_fail(err, TENREC_EPEER_UNKNOWN, "no member %d", (int)to);
    else if (!(msg->flags & TENREC_MSG_CONTROL) &&
             d->queued_bytes + total > d->opt->max_queued_bytes)
        tenrec_fail(err, TENREC_EAGAIN, "max_queued_bytes is reached");
    else
        err->code = TENREC_OK;
    if (l && err->code == TENREC_OK) {
        *l->last = o;
        l->last = &o->next;
        d->queued_bytes += total;
        d->n_queued++;
    }
    pthread_mutex_unlock(&d->lock);
    if (err->code != TENREC_OK)
        free(o);
    else
        eventfd_write(d->wake_fd, 1);
    return err->code;
}

void datagram_send(struct tenrec_agent *self, tenrec_peer to, struct tenrec_msg *msg,
                   struct tenrec_done done)
{
    tenrec_error err;
    const tenrec_status st = queue_letter(self->impl, to, msg, done, &err);

    msg->release(msg);
    if (st != TENREC_OK && done.fn)
        done.fn(done.arg, &err);
}

static ssize_t send_bytes(struct datagram *d, const struct link *l, const struct head *head,
                          const void *bytes, size_t len)
{
    struct sockaddr_un to;
    struct iovec part[] = { { (void *)(uintptr_t)head, sizeof *head },
                            { (void *)(uintptr_t)bytes, len } };
    const struct msghdr msg = { .msg_name = &to,
                                .msg_namelen =
                                    address_of(l->name, l->called ? REQUESTS : ANSWERS, &to),
                                .msg_iov = part,
                                .msg_iovlen = 2 };

    return sendmsg(d->fd[ANSWERS], &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void outgoing_end(struct datagram *d, struct outgoing *o, const tenrec_error *why)
{
    if (o->done.fn)
        o->done.fn(o->done.arg, why);
    pthread_mutex_lock(&d->lock);
    d->queued_bytes -= o->total;
    if (--d->n_queued == 0)
        pthread_cond_broadcast(&d->idle);
    pthread_mutex_unlock(&d->lock);
    free(o);
}

/* Sends what the kernel takes. Returns false if the link has ended; *ret_more: it takes no more. */
static bool link_push(struct datagram *d, struct link *l, bool *ret_more)
{
    for (;;) {
        struct outgoing *o;
        struct head head = { .link = l->number };
        size_t n;

        pthread_mutex_lock(&d->lock);
        o = l->first;
        pthread_mutex_unlock(&d->lock);
        if (!o)
            return true;
        head.total = o->total;
        head.offset = o->sent;
        n = o->total - o->sent < CHUNK ? (size_t)(o->total - o->sent) : CHUNK;
        if (send_bytes(d, l, &head, o->bytes + o->sent, n) < 0) {
            if (errno == ECONNREFUSED || errno == ECONNRESET) {
                link_end(d, l, TENREC_ECONNECT, ECONNREFUSED);
                return false;
            }
            *ret_more = true; /* EAGAIN, ENOBUFS */
            return true;
        }
        o->sent += n;
        l->used = true;
        if (o->sent < o->total)
            continue;
        pthread_mutex_lock(&d->lock);
        l->first = o->next;
        if (!l->first)
            l->last = &l->first;
        pthread_mutex_unlock(&d->lock);
        outgoing_end(d, o, NULL);
    }
}

bool send_all(struct datagram *d)
{
    bool more = false;
    struct link *l = link_after(d, NULL), *next;

    for (; l; l = next) {
        next = link_after(d, l);
        link_push(d, l, &more);
    }
    return more;
}

/* A socket that is gone refuses even this. */
void send_questions(struct datagram *d)
{
    struct link *l = link_after(d, NULL), *next;

    for (; l; l = next) {
        const struct head head = { .link = l->number };

        next = link_after(d, l);
        if (send_bytes(d, l, &head, NULL, 0) < 0 && errno == ECONNREFUSED)
            link_end(d, l, TENREC_ECONNECT, ECONNREFUSED);
    }
}
