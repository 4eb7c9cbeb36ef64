/* SPDX-License-Identifier: Apache-2.0 */
/* link.c - the connection of a link: its peer and its records. */
#include "cuda/link/link_parts.h"
#include "transport/transport_local.h"
#include "wire/nop.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define HELLO_HEAD (4 + PROCESS_TOKEN + BOOT_ID)

_Static_assert(BOOT_ID >= LOCALITY_PART_MAX, "a boot id has room");
_Static_assert(SAID_MAX >= HELLO_HEAD + DEVICES_MAX * 16, "a hello is said as a whole");

bool link_is_note(struct nop_bytes note)
{
    return note.len > 0 && note.data[0] >= NOTE_KIND + METHOD_XTH &&
           note.data[0] <= NOTE_KIND + METHOD_BASIC;
}

/* ---- saying ---- */

bool link_say(struct pipe *p, const unsigned char *body, size_t len)
{
    if (p->services->send_object(p, p->devices.role, body, len) == TENREC_OK)
        return true;
    if (pipe_state(p) != PIPE_BROKEN)
        p->services->failf(p, TENREC_ENOMEM, 0, "no memory for a frame of channel \"tenrec_cuda\"");
    return false;
}

bool link_say_number(struct pipe *p, enum said what, uint64_t number)
{
    unsigned char body[1 + 8] = { (unsigned char)what };

    put_le64(body + 1, number);
    return link_say(p, body, sizeof body);
}

/* A token that differs between processes, also after fork. Known only to this process
 * and its peers. */
static void process_token(unsigned char ret[PROCESS_TOKEN])
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static unsigned char token[PROCESS_TOKEN];
    static pid_t made_by;

    pthread_mutex_lock(&lock);
    if (made_by != getpid() && getrandom(token, sizeof token, 0) == (ssize_t)sizeof token)
        made_by = getpid();
    memcpy(ret, token, PROCESS_TOKEN);
    pthread_mutex_unlock(&lock);
}

static void link_say_hello(struct pipe *p)
{
    const struct cuda *c = p->ep->cuda;
    unsigned char body[HELLO_HEAD + DEVICES_MAX * 16] = { SAID_HELLO, LINK_VERSION };
    char boot[LOCALITY_PART_MAX];
    unsigned n = 0;

    /* Without devices of our own there is nothing to map. */
    body[2] = (unsigned char)(c->holds ? c->methods : c->methods & METHOD_BIT(METHOD_BASIC));
    process_token(body + 4);
    if (locality_boot_id(boot))
        memcpy(body + 4 + PROCESS_TOKEN, boot, strnlen(boot, BOOT_ID));
    while (c->holds && n < DEVICES_MAX && device_uuid((int)n, body + HELLO_HEAD + (size_t)n * 16))
        n++;
    body[3] = (unsigned char)n;
    link_say(p, body, HELLO_HEAD + (size_t)n * 16);
}

/* ---- hearing ---- */

/* Each peer knows our token and may send it back, so ask the kernel whether the other end
 * is this process. */
static bool link_is_to_ourselves(const struct pipe *p)
{
    return p->remote.pid ? p->remote.pid == getpid()
                         : socket_is_held_by(getpid(), p->conns.of[p->devices.role]->source.fd);
}

static bool link_hear_hello(struct pipe *p, const unsigned char *body, size_t len)
{
    struct link *l = p->devices.link;
    unsigned char token[PROCESS_TOKEN];
    char boot[LOCALITY_PART_MAX] = "";

    if (len < HELLO_HEAD || body[3] > DEVICES_MAX ||
        len != (size_t)HELLO_HEAD + (size_t)body[3] * 16)
        return false;
    /* Earlier loans depend on the peer's identity. */
    if (l->greeted && memcmp(l->token, body + 4, PROCESS_TOKEN) != 0)
        return false;
    l->methods = body[2];
    memcpy(l->token, body + 4, PROCESS_TOKEN);
    l->n_uuids = body[3];
    memcpy(l->uuid, body + HELLO_HEAD, (size_t)l->n_uuids * 16);
    process_token(token);
    l->same_process = memcmp(token, l->token, PROCESS_TOKEN) == 0 && link_is_to_ourselves(p);
    l->same_host = locality_boot_id(boot) &&
                   strncmp(boot, (const char *)body + 4 + PROCESS_TOKEN, BOOT_ID) == 0;
    l->greeted = true;
    link_greeted(p);
    return true;
}

static bool link_hear(struct pipe *p, const unsigned char *body, size_t len)
{
    const uint64_t number = len >= 9 ? get_le64(body + 1) : 0;
    bool known = false;

    switch (len ? body[0] : 0) {
    case SAID_HELLO:
        known = link_hear_hello(p, body, len);
        break;
    case SAID_TAKEN:
        known = len == 9 && lent_taken(p, number);
        break;
    case SAID_REFUSED:
        known = len == 9 && lent_refused(p, number);
        break;
    case SAID_FAILED:
        known = len >= 9 && link_failed(p, number, (const char *)body + 9, len - 9);
        break;
    default:
        break;
    }
    if (!known)
        p->services->failf(p, TENREC_EPROTOCOL, 0,
                           "sent a frame of channel \"tenrec_cuda\" that makes no "
                           "sense");
    return known;
}

/* One read. Returns false if no byte is available, or the pipe is broken. */
static bool read_more(struct pipe *p, struct iovec *lead, int n_lead)
{
    struct conn *c = p->conns.of[p->devices.role];
    bool is_short;
    int e;
    ssize_t n = conn_read(c, lead, n_lead, false, &is_short, &e);

    if (n < 0)
        p->services->failf(p, TENREC_EPEER_LOST, e,
                           e ? "connection lost" : "connection closed by the peer");
    if (n <= 0)
        return false;
    if (n_lead)
        p->devices.link->in.got += (uint64_t)n < lead->iov_len ? (uint64_t)n : lead->iov_len;
    return true;
}

/* PART: more bytes are needed. ENOUGH: stop reading for now. */
enum heard { HEARD, HEARD_PART, HEARD_ENOUGH };

static enum heard read_piece(struct pipe *p)
{
    struct link *l = p->devices.link;

    conn_take(p->conns.of[p->devices.role], l->in.to, l->in.len, &l->in.got);
    while (l->in.got < l->in.len) {
        struct iovec lead = { l->in.to ? l->in.to + l->in.got : NULL,
                              (size_t)(l->in.len - l->in.got) };

        if (!read_more(p, &lead, l->in.to ? 1 : 0))
            return HEARD_ENOUGH;
        conn_take(p->conns.of[p->devices.role], l->in.to, l->in.len, &l->in.got);
    }
    link_piece_end(p);
    return HEARD;
}

/* The frame at the front of the buffer. */
static enum heard take_frame(struct pipe *p)
{
    struct conn *c = p->conns.of[p->devices.role];
    const unsigned char *body;
    size_t len;

    if (conn_buffered(c) <= FRAME_HEAD)
        return conn_reserve(c, FRAME_HEAD + PIECE_HEAD) ? HEARD_PART : HEARD_ENOUGH;
    body = c->buf + c->pos + FRAME_HEAD;
    if (body[0] == SAID_PIECE) {
        uint64_t n = get_le64(c->buf + c->pos);

        if (n < PIECE_HEAD) {
            p->services->failf(p, TENREC_EPROTOCOL, 0, "sent a piece of a tensor in %llu bytes",
                               (unsigned long long)n);
            return HEARD_ENOUGH;
        }
        if (conn_buffered(c) < FRAME_HEAD + PIECE_HEAD)
            return conn_reserve(c, FRAME_HEAD + PIECE_HEAD) ? HEARD_PART : HEARD_ENOUGH;
        if (!link_piece_begin(p, get_le64(body + 1), get_le64(body + 9), n - PIECE_HEAD))
            return HEARD_ENOUGH;
        c->pos += FRAME_HEAD + PIECE_HEAD;
        return HEARD;
    }
    switch (conn_frame(c, SAID_MAX, &body, &len)) {
    case FRAME_WHOLE:
        /* The tensor of the failure may not have been read yet. */
        if (body[0] == SAID_FAILED && len >= 9 &&
            !link_find(p->devices.link, get_le64(body + 1), NULL))
            return HEARD_ENOUGH;
        if (!link_hear(p, body, len))
            return HEARD_ENOUGH;
        c->pos += FRAME_HEAD + len;
        return HEARD;
    case FRAME_PARTIAL:
        return HEARD_PART;
    default:
        p->services->failf(p, TENREC_EPROTOCOL, 0,
                           "sent a frame of %zu bytes on channel \"tenrec_cuda\"", len);
        return HEARD_ENOUGH;
    }
}

void link_read(struct pipe *p)
{
    while (p->devices.link && pipe_state(p) == PIPE_ESTABLISHED) {
        const enum heard heard = p->devices.link->in.on ? read_piece(p) : take_frame(p);

        if (heard == HEARD_ENOUGH || (heard == HEARD_PART && !read_more(p, NULL, 0)))
            return;
    }
}

void link_arrived(struct pipe *p, struct conn *c)
{
    (void)c;
    link_read(p);
}

/* ---- life ---- */

void link_open(struct pipe *p)
{
    if (!p->devices.role)
        return;
    p->devices.link = calloc(1, sizeof *p->devices.link);
    if (!p->devices.link) {
        p->services->failf(p, TENREC_ENOMEM, 0, "no memory for channel \"tenrec_cuda\"");
        return;
    }
    p->devices.link->last_arriving = &p->devices.link->arriving;
    link_say_hello(p);
    link_run(p);
}

void link_hello_again(struct pipe *p)
{
    if (p->devices.link && pipe_state(p) == PIPE_ESTABLISHED)
        link_say_hello(p);
}

void link_run(struct pipe *p)
{
    if (!p->devices.link)
        return;
    link_read(p);
    if (!p->devices.link->greeted && pipe_state(p) == PIPE_ESTABLISHED)
        return;
    link_greeted(p);
    link_read(p);
}

void link_broken(struct pipe *p)
{
    if (!p->devices.link)
        return;
    lent_of_broken(p);
    link_receive_broken(p);
    if (p->devices.link->greeted && !p->devices.link->same_process)
        imports_close(p->devices.link->token);
}

void link_close(struct pipe *p)
{
    if (p->devices.link) {
        link_receive_broken(p);
        free(p->devices.link->lending);
        free(p->devices.link);
    }
    p->devices.link = NULL;
}
