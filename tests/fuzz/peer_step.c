/* SPDX-License-Identifier: Apache-2.0 */
/* peer_step.c - what peers do: frames that are right by default, spoiled by the data of the
 * step, in pieces as its argument says. */
#include "peer_step.h"
#include "channel/channel.h"
#include "fake_wire.h"
#include "frame.h"
#include "fuzz.h"
#include "wire/descriptor.h"

#include <sys/socket.h>
#include <unistd.h>

#define ROUNDS 20

static struct frames frames; /* too large for the stack */

static struct fake_conn *conn_of(uint8_t who)
{
    return fake_wire.n ? &fake_wire.conn[who % fake_wire.n] : NULL;
}

struct pipe *peer_pipe(struct fake_host *h, uint8_t who)
{
    struct agent *a = fake_host_agent(h);
    size_t n = 0;

    for (size_t i = 0; i < a->pipes.n; i++)
        n += a->pipes.pipe[i] != NULL;
    who = (uint8_t)(n ? who % n : 0);
    for (size_t i = 0; i < a->pipes.n; i++)
        if (a->pipes.pipe[i] && who-- == 0)
            return a->pipes.pipe[i];
    return NULL;
}

struct fake_conn *peer_conn(const struct pipe *p, unsigned role)
{
    return role < CONN_ROLES && p->conns.of[role] ? fake_wire_of(p->conns.of[role]) : NULL;
}

/* Spoils what was made and writes it to `c`. */
static void frames_write(struct fake_conn *c, const struct fuzz_step *s, size_t granted)
{
    frames_spoil(&frames, s);
    if (c)
        fake_conn_write(c, frames.bytes, frames.len, granted);
    frames.len = 0;
}

void peer_calls(struct fake_host *h, const struct fuzz_step *s)
{
    fake_wire_call(fake_host_agent(h), s->arg & 1);
}

void peer_greets(struct fake_host *h, const struct fuzz_step *s)
{
    const struct listener *l = &fake_host_agent(h)->listener;
    const size_t which = l->wanted.n ? step_bits(s, 2, 4) % l->wanted.n : 0;

    frames.len = 0;
    if (s->arg & 1)
        frames_add_hello(&frames, true,
                         s->arg & 2 || !l->wanted.n ? s->arg : l->wanted.list[which].id);
    else
        frames_add_hello(&frames, false, 0);
    frames_write(conn_of(s->who), s, step_bits(s, 8, 6));
}

/* Bits 0-1 transports, 2-6 channels (all bits zero: all), 7-9 who it claims to be, 10 maps. */
static struct frame_claim claim_of(const struct fuzz_step *s)
{
    struct frame_claim claim = { .transports = step_bits(s, 0, 2),
                                 .channels = step_bits(s, 2, 5),
                                 .version = 1,
                                 .capabilities = IDENTITY_ALL_DTYPES | IDENTITY_OWN_MESSAGES |
                                                 IDENTITY_SHORT_LISTS };

    if (!claim.transports)
        claim.transports = 3;
    if (!claim.channels)
        claim.channels = 0xff;
    if (!step_bits(s, 10, 1))
        claim.capabilities |= IDENTITY_MAPS;
    claim.rank = (tenrec_peer)step_bits(s, 7, 3);
    claim.life = FAKE_LIFE(claim.rank);
    switch (step_bits(s, 7, 3)) {
    case 4:
        claim.version = 0;
        break;
    case 5:
        claim.rank = TENREC_ANONYMOUS;
        break;
    case 6:
        claim.rank = 1;
        claim.life = 1;
        break;
    default:
        break;
    }
    return claim;
}

void peer_offers(struct fake_host *h, const struct fuzz_step *s)
{
    const struct frame_claim claim = claim_of(s);

    frames.len = 0;
    frames_add_brochure(&frames, fake_host_agent(h), &claim);
    frames_write(conn_of(s->who), s, step_bits(s, 12, 8));
}

void peer_opens_pipe(struct fake_host *h, const struct fuzz_step *s)
{
    struct agent *a = fake_host_agent(h);
    const struct frame_claim claim = claim_of(s);
    const bool near = step_bits(s, 11, 1);
    struct fake_conn *c = fake_wire_call(a, near);
    const struct fuzz_step as_is = { .len = 0 };

    frames.len = 0;
    frames_add_hello(&frames, false, 0);
    frames_add_brochure(&frames, a, &claim);
    frames_write(c, s, 0);
    fake_host_run(h, ROUNDS);
    for (unsigned i = 0; i < CONN_ROLES && a->listener.wanted.n; i++) {
        const struct registration r = a->listener.wanted.list[0];

        c = fake_wire_call(a, strcmp(r.pipe->terms.transport->name, FAKE_NEAR) == 0);
        frames_add_hello(&frames, true, r.id);
        frames_write(c, &as_is, 0);
        fake_host_run(h, ROUNDS);
    }
    if (s->who & 1)
        for (unsigned i = 0; i < fake_wire.n; i++)
            fake_conn_open_socket(&fake_wire.conn[i]);
}

void peer_answers(struct fake_host *h, const struct fuzz_step *s)
{
    struct pipe *p = peer_pipe(h, s->who);
    struct frame_claim claim = claim_of(s);
    struct fake_conn *c = p ? peer_conn(p, CONN_DESCRIPTOR) : NULL;

    if (!c || !p->outgoing)
        return;
    if (step_bits(s, 7, 3) == 0) {
        claim.rank = p->to->id;
        claim.life = p->to->incarnation;
    }
    frames.len = 0;
    if (frames_add_answer(&frames, fake_host_agent(h), &claim, c->out, c->out_len))
        frames_write(c, s, step_bits(s, 12, 8));
    fake_host_run(h, ROUNDS);
}

void peer_writes(struct fake_host *h, const struct fuzz_step *s)
{
    struct fake_conn *c = conn_of(s->who);

    (void)h;
    if (c)
        fake_conn_write(c, s->data, s->len, s->arg & 0xff);
}

/* ---- messages ---- */

static const int32_t types[] = { TENREC_MSG_CALL,         TENREC_MSG_RET,
                                 TENREC_MSG_ONE_WAY_CALL, TENREC_MSG_CANCEL,
                                 TENREC_MSG_EXCEPTION,    TENREC_MSG_VIEW,
                                 TENREC_MSG_GATHER,       0 };
static const uint32_t sizes[] = { 0, 4, 100, 200, 1000, 5000, 20000, 40000 };

/* Bits 0-2 type, 3-4 tensors, 5-7 their size, 8-10 payload's size, 11-13 way, 14 pickle,
 * 15 general form, 16 a wrong list, 17 tensors' bytes withheld, 18-29 bytes granted,
 * 30 no target devices; the descriptors of WAY_PASSED are those of packet 1 or 2. */
static struct frame_message message_of(const struct fake_host *h, const struct fuzz_step *s)
{
    return (struct frame_message){ .type = types[step_bits(s, 0, 3)],
                                   .id = h->next_id - 1,
                                   .n_tensors = step_bits(s, 3, 2),
                                   .tensor_len = sizes[step_bits(s, 5, 3)],
                                   .payload_len = sizes[step_bits(s, 8, 3)],
                                   .way = (enum frame_way)(step_bits(s, 11, 3) % WAYS),
                                   .shortlist = !step_bits(s, 14, 1),
                                   .longwinded = step_bits(s, 15, 1),
                                   .wrong_list = step_bits(s, 16, 1),
                                   .targetless = step_bits(s, 30, 1),
                                   .packet = (uint8_t)(1 + step_bits(s, 31, 1)) };
}

/* Writes a tensor's bytes where the channel has them. */
static void send_tensor(const struct pipe *p, const struct frame_message *m, size_t granted)
{
    const struct fuzz_step as_is = { .len = 0 };
    unsigned char object[32] = { 0xb9, 2, 0x82 };
    const uint32_t pid = (uint32_t)getpid();

    if (!m->tensor_len)
        return;
    if (p->terms.channel == &channel_cma) {
        memcpy(object + 3, &pid, 4);
        object[7] = 0x83;
        put_le64(object + 8, m->way == WAY_PULL_BAD ? 8 : (uintptr_t)frame_memory);
        frames_add_object(&frames, object, 16);
    } else if (p->terms.channel == &channel_basic || m->way == WAY_PLAIN) {
        frames_add_bytes(&frames, m->tensor_len);
    }
    if (frames.len)
        frames_write(
            peer_conn(p, p->terms.channel == &channel_cma || p->terms.channel == &channel_basic
                             ? CONN_CHANNEL
                             : CONN_DESCRIPTOR),
            &as_is, granted);
    for (uint32_t at = 0, lane = 0; m->way == WAY_LANES && at < m->tensor_len; lane++) {
        const uint32_t len = m->tensor_len - at < 1000 ? m->tensor_len - at : 1000;

        frames_add_bytes(&frames, len);
        frames_write(peer_conn(p, CONN_CHANNEL +
                                      lane % (p->terms.channel->data ? p->terms.channel->data : 1)),
                     &as_is, granted);
        at += len;
    }
}

void peer_sends(struct fake_host *h, const struct fuzz_step *s)
{
    struct pipe *p = peer_pipe(h, s->who);
    const struct frame_message m = message_of(h, s);
    const size_t granted = step_bits(s, 18, 12);

    if (!p)
        return;
    frames.len = 0;
    frames_add_message(&frames, p, &m);
    frames_write(peer_conn(p, CONN_DESCRIPTOR), s, granted);
    for (uint32_t i = 0; i < m.n_tensors && p->terms.channel && !step_bits(s, 17, 1); i++)
        send_tensor(p, &m, granted);
}

/* ---- channels ---- */

/* Of channel_host: bits 0-2 what, 3-6 number, 7-9 bytes of SENT. */
static void control_host(struct pipe *p, const struct fuzz_step *s)
{
    const uint32_t what = step_bits(s, 0, 3), number = step_bits(s, 3, 4);
    const uint32_t bytes = sizes[step_bits(s, 7, 3)];
    unsigned char body[64] = { (unsigned char)what };
    static const uint64_t word = 0x7465;

    switch (what) {
    case 1:
        put_le64(body + 1, number ? number : (uintptr_t)&word);
        put_le64(body + 9, word);
        frames_add_object(&frames, body, 17);
        break;
    case 2:
        frames_add_object(&frames, body, 1);
        break;
    case 5:
        put_le64(body + 1, number);
        frames_add_bytes(&frames, 9 + bytes);
        memcpy(frames.bytes + FRAME_HEAD, body, 9);
        break;
    default:
        put_le64(body + 1, number);
        frames_add_object(&frames, body, 9);
    }
    frames_write(peer_conn(p, CONN_CHANNEL + p->terms.channel->data), s, step_bits(s, 12, 8));
}

/* Bit 31: a DescriptorReply instead. */
void peer_controls(struct fake_host *h, const struct fuzz_step *s)
{
    struct pipe *p = peer_pipe(h, s->who);
    struct nop_device device = { nop_text("cpu"), 0 };
    unsigned char reply[DESCRIPTOR_REPLY_MAX(1)];

    frames.len = 0;
    if (!p || !p->terms.channel)
        return;
    if (s->arg >> 31) {
        frames_add_object(&frames, reply, descriptor_reply_write(reply, sizeof reply, &device, 1));
        frames_write(peer_conn(p, CONN_REPLY), s, 0);
    } else if (p->terms.channel == &channel_cma) {
        frames_add_object(&frames, NULL, 0);
        frames_write(peer_conn(p, CONN_CHANNEL + 1), s, 0);
    } else {
        control_host(p, s);
    }
}

/* ---- connections ---- */

void peer_cuts(struct fake_host *h, const struct fuzz_step *s)
{
    static const int errors[] = { 0, ECONNRESET, 0, ETIMEDOUT };
    struct fake_conn *c = conn_of(s->who);

    (void)h;
    if (c)
        fake_conn_end(c, errors[step_bits(s, 0, 2)]);
}

/* Bits 0-15: room, 0: none, 0xffff: any; 16: on all connections; 17: connections that the
 * agent dials from now on end so. */
void peer_reads(struct fake_host *h, const struct fuzz_step *s)
{
    static const int refusals[] = { 0, ECONNREFUSED, EINPROGRESS, ENETUNREACH };
    const uint32_t bytes = step_bits(s, 0, 16);

    (void)h;
    if (step_bits(s, 17, 1)) {
        fake_wire.refuses = refusals[step_bits(s, 18, 2)];
        return;
    }
    for (unsigned i = 0; i < fake_wire.n; i++)
        if (step_bits(s, 16, 1) || i == s->who % fake_wire.n)
            fake_conn_allow(&fake_wire.conn[i], bytes == 0xffff ? SIZE_MAX : bytes);
}

/* Bits 0-7: the number of the packet, 8-10: descriptors in it, 11: it is short. */
void peer_passes(struct fake_host *h, const struct fuzz_step *s)
{
    union {
        struct cmsghdr align;
        char buf[CMSG_SPACE(8 * sizeof(int))];
    } control = { .buf = { 0 } };
    struct pipe *p = peer_pipe(h, s->who);
    struct fake_conn *c = p ? peer_conn(p, CONN_DESCRIPTOR) : NULL;
    const unsigned n = step_bits(s, 8, 3);
    unsigned char text[8];
    struct iovec iov = { text, step_bits(s, 11, 1) ? 3 : 8 };
    struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

    if (!c)
        return;
    fake_conn_open_socket(c);
    if (c->fd < 0)
        return;
    put_le64(text, step_bits(s, 0, 8));
    if (n) {
        m.msg_control = control.buf;
        m.msg_controllen = (socklen_t)CMSG_SPACE(n * sizeof(int));
        CMSG_FIRSTHDR(&m)->cmsg_level = SOL_SOCKET;
        CMSG_FIRSTHDR(&m)->cmsg_type = SCM_RIGHTS;
        CMSG_FIRSTHDR(&m)->cmsg_len = (socklen_t)CMSG_LEN(n * sizeof(int));
        for (unsigned i = 0; i < n; i++)
            memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)) + i * sizeof(int), &(int){ STDERR_FILENO },
                   sizeof(int));
    }
    (void)!sendmsg(c->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
}
