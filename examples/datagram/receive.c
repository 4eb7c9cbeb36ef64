/* SPDX-License-Identifier: Apache-2.0 */
#include "datagram.h"
#include "letter.h"

#include <stdlib.h>
#include <string.h>

/* Returns false if no agent has this address. */
static bool name_of(const struct sockaddr_un *from, socklen_t len, char ret[NAME_LEN + 1])
{
    const size_t n = strlen("tenrec-");

    if (len != offsetof(struct sockaddr_un, sun_path) + 1 + n + NAME_LEN + 2 || from->sun_path[0] ||
        memcmp(from->sun_path + 1, "tenrec-", n) != 0)
        return false;
    memcpy(ret, from->sun_path + 1 + n, NAME_LEN);
    ret[NAME_LEN] = '\0';
    return strspn(ret, "0123456789abcdef") == NAME_LEN;
}

static void answer_exception(struct datagram *d, tenrec_peer from, const struct tenrec_msg *msg,
                             const tenrec_error *why)
{
    struct tenrec_msg *answer = d->self->host->exception_new(d->self, msg, why);

    if (!answer)
        return; /* the caller's time runs out */
    if (msg->type & TENREC_MSG_RESPONSE_BIT)
        d->self->host->deliver_outer(d->self, from, answer);
    else
        datagram_send(d->self, from, answer, (struct tenrec_done){ NULL, NULL });
}

static void letter_deliver(struct datagram *d, struct link *l)
{
    struct tenrec_msg *msg = letter_read(d->self, l->in, l->in_len);
    const unsigned char *tensors = l->in + l->in_len;
    tenrec_peer from;
    tenrec_error err;

    if (!msg)
        return;
    pthread_mutex_lock(&d->lock);
    from = l->called ? l->peer : member_named(d, l->name);
    pthread_mutex_unlock(&d->lock);
    if (!l->called)
        msg->route = (struct tenrec_route){ 1, l->serial };
    for (uint32_t i = 0; i < msg->n_tensors; i++)
        tensors -= tenrec_msg_tensor(msg, i)->bytes;
    if (msg->n_tensors && d->self->host->place(d->self, from, msg, &err) != TENREC_OK) {
        if (msg->type != TENREC_MSG_ONE_WAY_CALL)
            answer_exception(d, from, msg, &err);
        msg->release(msg);
        return;
    }
    for (uint32_t i = 0; i < msg->n_tensors; i++) {
        const struct tenrec_tensor_desc *desc = tenrec_msg_tensor(msg, i);

        if (desc->bytes)
            memcpy(desc->data, tensors, desc->bytes);
        tensors += desc->bytes;
    }
    d->self->host->deliver_outer(d->self, from, msg);
}

bool receive_one(struct datagram *d, int which)
{
    static _Thread_local unsigned char bytes[CHUNK];
    struct sockaddr_un from;
    struct head head;
    struct iovec part[] = { { &head, sizeof head }, { bytes, sizeof bytes } };
    struct msghdr msg = {
        .msg_name = &from, .msg_namelen = sizeof from, .msg_iov = part, .msg_iovlen = 2
    };
    const ssize_t n = recvmsg(d->fd[which], &msg, MSG_DONTWAIT);
    char name[NAME_LEN + 1];
    struct link *l;
    uint64_t len;

    if (n < 0)
        return false;
    if ((size_t)n < sizeof head || !name_of(&from, msg.msg_namelen, name) ||
        !(l = link_of_datagram(d, which, name, &head)) || head.total == 0)
        return true;
    len = (uint64_t)n - sizeof head;
    if (head.offset == 0)
        l->in_len = 0;
    if (head.total > d->opt->max_message || head.offset != l->in_len ||
        len > head.total - head.offset)
        return true;
    if (l->in_len + len > l->in_room) { /* grows with received bytes, not with announced ones */
        const uint64_t room = 2 * (l->in_len + len);
        unsigned char *more = realloc(l->in, room);

        if (!more)
            return true;
        l->in = more;
        l->in_room = room;
    }
    memcpy(l->in + l->in_len, bytes, len);
    l->in_len += len;
    if (l->in_len == head.total) {
        letter_deliver(d, l);
        l->in_len = 0;
        if (l->in_room > CHUNK) {
            free(l->in);
            l->in = NULL;
            l->in_room = 0;
        }
    }
    return true;
}
