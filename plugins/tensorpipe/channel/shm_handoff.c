/* SPDX-License-Identifier: Apache-2.0 */
/* shm_handoff.c - records in notes, descriptors over the socket. */
#include "channel/channel.h"
#include "pipe/pipe.h"
#include "transport/transport_local.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

/* A note: kind, record, number of descriptors, number of their packet. */
#define AT_RECORD 1
#define AT_FDS (AT_RECORD + TENREC_SHARE_RECORD)
#define AT_NUMBER (AT_FDS + 1)
#define NOTE_LEN (AT_NUMBER + 8)

/* On the socket of the reply connection: a byte that says so and the packet's number. The
 * descriptors arrive with the first byte. Zeros in between are bells of that connection. */
#define PACKET 1
#define PACKET_LEN (1 + 8)
#define BELL 0
#define SKIPPED_MAX 4096 /* packets and bells before the one that a note names */

_Static_assert(TENREC_SHARE_FDS <= FD_MESSAGE_MAX, "a packet is one message");

void shm_handoff_open(struct pipe *p)
{
    const struct tenrec_host *host = p->ep->host;
    struct tenrec_sharing *s = NULL;

    if ((p->terms.capabilities & IDENTITY_MAPS) &&
        p->conns.of[CONN_DESCRIPTOR]->stream->passes_fds &&
        TENREC_HAS(host, shared)) /* the last of five that arrived together */
        s = host->sharing_open(p->ep->self);
    pthread_mutex_lock(&p->lock);
    p->tensors.sharing = s;
    pthread_mutex_unlock(&p->lock);
}

void shm_handoff_close(struct pipe *p)
{
    if (p->tensors.sharing)
        p->ep->host->sharing_close(p->ep->self, p->tensors.sharing);
    p->tensors.sharing = NULL;
}

bool shm_handoff_maps(struct pipe *p)
{
    bool maps;

    pthread_mutex_lock(&p->lock);
    maps = p->tensors.sharing != NULL;
    pthread_mutex_unlock(&p->lock);
    return maps;
}

/* ---- sending ---- */

static bool send_fds(struct pipe *p, const struct tenrec_share *share, uint64_t number)
{
    unsigned char text[PACKET_LEN] = { PACKET };

    put_le64(text + 1, number);
    return fd_message_send(p->conns.of[CONN_REPLY]->source.fd, text, sizeof text, share->fd,
                           share->n_fds) == 0;
}

static void close_fds(struct tenrec_share *share)
{
    while (share->n_fds > 0)
        close(share->fd[--share->n_fds]);
}

bool shm_handoff_send(struct pipe *p, const struct tenrec_tensor_desc *t, unsigned char kind,
                      struct descriptor_note *note)
{
    struct endpoint *ep = p->ep;
    struct tenrec_share share;

    if (!p->tensors.sharing || !ep->host->share(ep->self, p->tensors.sharing, t, &share))
        return false;
    if (share.n_fds && !send_fds(p, &share, p->tensors.fds_sent + 1)) {
        ep->host->share_back(ep->self, p->tensors.sharing, &share);
        return false;
    }
    if (share.n_fds)
        p->tensors.fds_sent++;
    note->len = NOTE_LEN;
    note->bytes[0] = kind;
    memcpy(note->bytes + AT_RECORD, share.record, sizeof share.record);
    note->bytes[AT_FDS] = (unsigned char)share.n_fds;
    put_le64(note->bytes + AT_NUMBER, p->tensors.fds_sent);
    close_fds(&share);
    counter_add(&ep->count.tensors_shared, 1);
    return true;
}

void shm_handoff_take_back(struct pipe *p, unsigned char kind, const struct descriptor_note *notes,
                           uint32_t n)
{
    struct endpoint *ep = p->ep;

    while (p->tensors.sharing && n > 0) {
        struct tenrec_share share = { .size = sizeof share };

        n--;
        if (notes[n].len != NOTE_LEN || notes[n].bytes[0] != kind)
            continue;
        memcpy(share.record, notes[n].bytes + AT_RECORD, sizeof share.record);
        ep->host->share_back(ep->self, p->tensors.sharing, &share);
    }
}

/* ---- receiving ---- */

/* Reads the rest of a packet after its first byte. */
static bool receive_number(int sock, uint64_t *ret)
{
    unsigned char text[8];
    const ssize_t n = local_receive(sock, text, sizeof text);

    *ret = n == sizeof text ? get_le64(text) : 0;
    return n == sizeof text;
}

/* One packet of descriptors, or a bell: number 0. Returns false if there is neither. */
static bool receive_packet(int sock, struct tenrec_share *share, uint64_t *ret_number)
{
    unsigned char first;
    unsigned fds;
    bool is_cut;

    if (fd_message_receive(sock, &first, 1, share->fd, TENREC_SHARE_FDS, &fds, &is_cut) <= 0)
        return false;
    share->n_fds = fds < TENREC_SHARE_FDS ? fds : TENREC_SHARE_FDS;
    *ret_number = 0;
    if (first == BELL)
        return fds == 0;
    return first == PACKET && fds <= TENREC_SHARE_FDS && receive_number(sock, ret_number);
}

/* The packet of that number; packets before it that no note names are skipped. */
static bool receive_fds(struct pipe *p, uint64_t number, struct tenrec_share *share)
{
    for (unsigned i = 0; i < SKIPPED_MAX; i++) {
        uint64_t got;

        close_fds(share);
        if (!receive_packet(p->conns.of[CONN_REPLY]->source.fd, share, &got))
            return false;
        if (got >= number)
            return got == number;
    }
    return false;
}

tenrec_status shm_handoff_arrived(struct pipe *p, struct nop_bytes note,
                                  struct tenrec_tensor_desc *desc, tenrec_error *err)
{
    struct endpoint *ep = p->ep;
    struct tenrec_share share = { .size = sizeof share };
    tenrec_status st;

    if (!p->tensors.sharing || note.len != NOTE_LEN)
        return tenrec_fail(err, TENREC_EPROTOCOL,
                           "descriptor: shared memory, which was not agreed on");
    if (note.data[AT_FDS] && !receive_fds(p, get_le64(note.data + AT_NUMBER), &share)) {
        close_fds(&share);
        return tenrec_fail(err, TENREC_EPROTOCOL,
                           "descriptor: shared memory without its file descriptors");
    }
    memcpy(share.record, note.data + AT_RECORD, sizeof share.record);
    st = ep->host->shared(ep->self, p->tensors.sharing, &share, desc, err);
    if (st == TENREC_OK)
        counter_add(&ep->count.tensors_mapped, 1);
    return st;
}
