/* SPDX-License-Identifier: Apache-2.0 */
/* channel_cma.c - TensorPipe's channel "cma": the receiver reads a tensor out
 * of the sender's memory.
 *
 * Per tensor the sender sends its process id and the address on the first
 * connection; the receiver answers with an empty frame on the second once it
 * has the bytes, in the same order. Until then they stay where they are. */
#include "channel/channel.h"
#include "pipe/pipe.h"
#include "transport/transport_local.h"
#include "wire/nop.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define CONN_ANNOUNCE CONN_CHANNEL
#define CONN_COMPLETION ((enum conn_role)(CONN_CHANNEL + 1))
#define ANNOUNCE_MAX (SEGMENT_HEAD - FRAME_HEAD)

static unsigned cma_send(struct pipe *p, struct send_request *request,
                         const struct tenrec_tensor_desc *t, uint64_t together, struct segment *s,
                         struct descriptor_note *note)
{
    struct nop_writer w;

    (void)p;
    (void)together;
    (void)note;
    nop_writer_init(&w, s->head + FRAME_HEAD, ANNOUNCE_MAX);
    nop_write_struct(&w, 2);
    nop_write_uint(&w, (uint32_t)getpid());
    nop_write_uint(&w, (uintptr_t)t->data);
    put_le64(s->head, w.len);
    s->request = request;
    s->on = CONN_ANNOUNCE;
    s->iov[0] = (struct iovec){ s->head, FRAME_HEAD + w.len };
    s->n = 1;
    s->awaited = true;
    request->parts += 2; /* the announcement is written, and the tensor taken */
    return 1;
}

/* Finds the process to read from. Over a Unix socket the kernel names it; over TCP the
 * id that the peer claims is checked. */
static tenrec_status cma_find_peer(struct pipe *p, uint32_t named, tenrec_error *err)
{
    struct cma_peer peer = p->tensors.puller;
    int e;

    if (p->remote.pid ? p->remote.pid != (pid_t)named : peer.pid && peer.pid != (pid_t)named)
        return tenrec_fail(err, TENREC_EPROTOCOL,
                           "sent a tensor in the memory of process %u, but is process %d", named,
                           (int)(p->remote.pid ? p->remote.pid : peer.pid));
    if (peer.pid)
        return TENREC_OK;
    if (p->remote.pid) {
        p->tensors.puller = cma_beside(p->remote.pid, p->conns.of[CONN_ANNOUNCE]->source.fd);
        return TENREC_OK;
    }
    e = cma_open(&peer, (pid_t)named);
    if (e)
        return tenrec_fail_errno(err, TENREC_EPEER_LOST, e,
                                 "sent a tensor in the memory of process %u", named);
    if (!socket_is_held_by(peer.pid, p->conns.of[CONN_ANNOUNCE]->source.fd)) {
        cma_close(&peer);
        return tenrec_fail(err, TENREC_EPROTOCOL,
                           "sent a tensor in the memory of process %u, of which cannot be seen "
                           "that it holds this connection; channels: [basic] works without",
                           named);
    }
    p->tensors.puller = peer;
    return TENREC_OK;
}

static enum part cma_fail(struct pipe *p, const tenrec_error *err)
{
    p->services->failf(p, err->code, 0, "%s", err->text);
    return PART_BAD;
}

static enum part cma_pull(struct pipe *p, struct intake *t, const unsigned char *frame, size_t len)
{
    struct nop_reader in;
    uint64_t pid, from;
    tenrec_error err;
    enum part part;
    int e;

    nop_reader_init(&in, "cma descriptor", frame, len, &err);
    nop_read_struct(&in, 2, "structure");
    pid = nop_read_uint(&in, UINT32_MAX, "pid");
    from = nop_read_uint(&in, UINT64_MAX, "ptr");
    if (in.status)
        return cma_fail(p, &err);
    if (!channel_target(t))
        return PART_THERE;
    if (cma_find_peer(p, (uint32_t)pid, &err))
        return cma_fail(p, &err);
    part = channel_pull(p, t, &p->tensors.puller, from, &e);
    if (part != PART_BAD)
        return part;
    (void)tenrec_fail_errno(
        &err, TENREC_EPEER_LOST, e, "cannot read a tensor of %llu bytes from process %d",
        (unsigned long long)channel_incoming(t)->len, (int)p->tensors.puller.pid);
    if (e == EPERM)
        tenrec_error_prefix(&err, "channels: [basic] works without");
    return cma_fail(p, &err);
}

static enum part cma_receive(struct pipe *p, struct intake *t)
{
    struct conn *c = p->conns.of[CONN_ANNOUNCE];
    const unsigned char *frame;
    enum part part;
    size_t len;

    t->want = CONN_ANNOUNCE;
    switch (conn_frame(c, ANNOUNCE_MAX, &frame, &len)) {
    case FRAME_PARTIAL:
        return PART_MISSING;
    case FRAME_TOO_BIG:
        p->services->failf(p, TENREC_EPROTOCOL, 0, "sent a cma descriptor of %zu bytes", len);
        return PART_BAD;
    case FRAME_NO_MEMORY:
        p->services->failf(p, TENREC_ENOMEM, 0, "no memory for a cma descriptor");
        return PART_BAD;
    case FRAME_WHOLE:
        break;
    }
    part = cma_pull(p, t, frame, len);
    if (part != PART_THERE)
        return part;
    c->pos += FRAME_HEAD + len;
    if (p->services->send_object(p, CONN_COMPLETION, NULL, 0)) {
        p->services->failf(p, TENREC_ENOMEM, 0, "no memory to say that a tensor was taken");
        return PART_BAD;
    }
    return PART_THERE;
}

/* The sender announces its process id and addresses only to a process that the kernel names:
 * over a Unix socket any, over TCP one of its own user. Checks the first connection, since the
 * peer has accepted that one, and no process owns a socket before. */
static void cma_complete(struct pipe *p)
{
    if (!p->remote.pid && !socket_is_our_users(p->conns.of[CONN_DESCRIPTOR]->source.fd))
        p->services->failf(
            p, TENREC_EPROTOCOL, 0,
            "chose channel cma, but cannot be seen to be a process of this user on this "
            "host; channels: [basic] works without");
}

static void cma_arrived(struct pipe *p, struct conn *c)
{
    const unsigned char *frame;
    size_t len;

    while (channel_next_frame(p, c, 0, &frame, &len)) {
        c->pos += FRAME_HEAD;
        if (!p->services->tensors_taken(p, p->tensors.n_taken++, 1)) {
            p->services->failf(p, TENREC_EPROTOCOL, 0, "took a tensor that was not sent");
            return;
        }
    }
}

const struct channel channel_cma = {
    .name = "cma",
    .connections = 2,
    .data = 1,
    .segments = channel_one_segment,
    .send = cma_send,
    .receive = cma_receive,
    .arrived = cma_arrived,
    .complete = cma_complete,
};
