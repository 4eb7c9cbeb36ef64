/* link_send.c - tensors of devices on their way out. */
#include "agent/agent.h"
#include "cuda/link_parts.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW 8                       /* pieces of one tensor that are on their way */
#define ORPHAN_NS UINT64_C(1000000000) /* that a peer whose pipe broke may go on reading */

#define CONTAINER(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

/* A piece of a tensor: copied to the host, then written. */
struct piece_out {
    struct flight flight;
    struct piece_out *next; /* of cuda.written */
    struct lent *lent;
    struct cuda *cuda;
    struct staging_piece *piece; /* NULL: from memory of the host */
    unsigned char *data;
    uint64_t offset, len;
};

/* ---- the end of what was lent ---- */

static struct cuda *cuda_of(const struct lent *l)
{
    return &l->pipe->agent->cuda;
}

static void lent_free(struct lent *l)
{
    device_event_give(l->event);
    if (l->loan)
        loan_end(l->loan, true);
    pipe_unref(l->pipe);
    free(l);
}

/* The device does not read it any more. */
static void lent_end(struct lent *l)
{
    struct pipe *p = l->pipe;

    *l->prev = l->next;
    if (l->next)
        l->next->prev = l->prev;
    pipe_part_done(p, l->out);
    lent_free(l);
}

static bool lent_is_done(const struct lent *l)
{
    return l->way == WAY_BASIC && !l->busy && (l->stopped || l->issued == l->bytes);
}

/* The peer hears why there are no more pieces. */
static void lent_failed(struct lent *l, const tenrec_error *why)
{
    unsigned char body[SAID_MAX] = { SAID_FAILED };
    const size_t n = strnlen(why->text, sizeof body - 9);

    if (l->stopped)
        return;
    l->stopped = true;
    l->waits = false;
    put_le64(body + 1, l->number);
    memcpy(body + 9, why->text, n);
    agent_log(l->pipe->agent, TENREC_LOG_WARN, "a tensor cannot be sent: %s", why->text);
    if (pipe_state(l->pipe) == PIPE_ESTABLISHED)
        link_say(l->pipe, body, 9 + n);
}

/* ---- pieces ---- */

static void piece_free(struct piece_out *o)
{
    if (o->piece)
        staging_give(&o->cuda->out, o->piece);
    free(o);
}

/* By whoever writes; the loop thread goes on with it. */
static void piece_written(void *arg, const tenrec_error *err)
{
    struct piece_out *o = arg;
    struct cuda *c = o->cuda;

    (void)err; /* the pipe broke, and the tensor is told so with all others */
    pthread_mutex_lock(&c->lock);
    o->next = c->written;
    c->written = o;
    pthread_mutex_unlock(&c->lock);
    reactor_post(&c->agent->reactor, &c->task);
}

static void send_piece(struct piece_out *o)
{
    struct lent *l = o->lent;
    unsigned char head[PIECE_HEAD] = { SAID_PIECE };

    put_le64(head + 1, l->number);
    put_le64(head + 9, o->offset);
    if (pipe_send_frame(l->pipe, l->pipe->device_role, head, sizeof head, o->data, o->len,
                        (struct tenrec_done){ piece_written, o }))
        return;
    if (pipe_state(l->pipe) != PIPE_BROKEN)
        pipe_failf(l->pipe, TENREC_ENOMEM, 0, "no memory for a piece of a tensor");
    l->stopped = true;
    piece_written(o, NULL);
}

static void piece_landed(struct flight *f, const tenrec_error *why)
{
    struct piece_out *o = CONTAINER(f, struct piece_out, flight);

    if (why)
        lent_failed(o->lent, why);
    if (!o->lent->stopped) {
        send_piece(o);
        return;
    }
    piece_written(o, NULL);
}

/* Queues the copy of it. errors: those of the driver; EAGAIN: wait for a piece */
static tenrec_status start_copy(struct piece_out *o, tenrec_error *err)
{
    struct lent *l = o->lent;
    const int index = l->stream.device.index;
    tenrec_status st = staging_get(&o->cuda->out, index, &o->piece, err);

    if (st)
        return st;
    o->data = o->piece->data;
    o->flight.landed = piece_landed;
    st = device_enter(index, err);
    if (st)
        return st;
    st = DRIVER(copy_to_host, index, err, o->data, (uintptr_t)(l->data + o->offset), (size_t)o->len,
                (void *)(uintptr_t)l->stream.stream);
    if (!st) {
        st = flight_start(&o->cuda->flights, &o->flight, &l->stream, err);
        /* Nothing will tell when that copy is done. */
        if (st)
            driver()->stream_sync((void *)(uintptr_t)l->stream.stream);
    }
    device_leave();
    return st;
}

static tenrec_status next_piece(struct lent *l, tenrec_error *err)
{
    struct piece_out *o = calloc(1, sizeof *o);
    const uint64_t left = l->bytes - l->issued;
    tenrec_status st = TENREC_OK;

    if (!o)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a piece of a tensor");
    o->lent = l;
    o->cuda = cuda_of(l);
    o->offset = l->issued;
    o->len = left < STAGING_PIECE ? left : STAGING_PIECE;
    if (l->stream.device.kind == TENREC_CUDA)
        st = start_copy(o, err);
    if (st) {
        piece_free(o);
        return st;
    }
    l->issued += o->len;
    l->busy++;
    if (l->stream.device.kind != TENREC_CUDA) {
        o->data = l->data + o->offset;
        send_piece(o);
    }
    return TENREC_OK;
}

/* False: it has ended. */
static bool pump(struct lent *l)
{
    tenrec_error err;

    l->waits = false;
    while (!l->stopped && l->issued < l->bytes && l->busy < WINDOW) {
        tenrec_status st = next_piece(l, &err);

        if (st == TENREC_EAGAIN) {
            l->waits = true;
            cuda_of(l)->out_starved = true;
            break;
        }
        if (st)
            lent_failed(l, &err);
    }
    if (!lent_is_done(l))
        return true;
    lent_end(l);
    return false;
}

void lent_pump_all(struct cuda *c)
{
    struct lent *l, *next;

    c->out_starved = false;
    for (l = c->lent; l; l = next) {
        next = l->next;
        if (l->waits)
            pump(l);
    }
}

void pieces_written(struct cuda *c)
{
    struct piece_out *o, *next;

    pthread_mutex_lock(&c->lock);
    o = c->written;
    c->written = NULL;
    pthread_mutex_unlock(&c->lock);
    for (; o; o = next) {
        struct lent *l = o->lent;

        next = o->next;
        piece_free(o);
        l->busy--;
        if (!l->busy || l->busy < WINDOW)
            pump(l);
    }
    if (c->out_starved)
        lent_pump_all(c);
    link_feed(c);
}

/* ---- the choice of a way ---- */

static tenrec_status lend_xth(struct lent *l, tenrec_error *err)
{
    const int index = l->stream.device.index;
    tenrec_status st = device_event_get(index, false, &l->event, err);

    if (st)
        return st;
    st = device_enter(index, err);
    if (st)
        return st;
    st = device_event_record(l->event, l->stream.stream, err);
    device_leave();
    if (st)
        return st;
    l->loan = loan_offer(l->data, l->bytes, l->event);
    if (!l->loan)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a loan");
    l->number = loan_number(l->loan);
    l->note_len = NOTE_SHORT;
    return TENREC_OK;
}

/* What the peer needs to map it; the event is behind all that writes it. */
static tenrec_status lend_ipc(struct lent *l, tenrec_error *err)
{
    const int index = l->stream.device.index;
    const driver_address at = (uintptr_t)l->data;
    driver_address base = 0;
    size_t whole = 0;
    uint64_t buffer = 0;
    struct driver_ipc_memory handle;
    tenrec_status st = device_event_get(index, true, &l->event, err);

    if (st)
        return st;
    st = device_enter(index, err);
    if (st)
        return st;
    st = DRIVER(memory_range, index, err, &base, &whole, at);
    if (!st && at - base + l->bytes > whole)
        st = tenrec_fail(err, TENREC_EINVAL, "cuda:%d: the tensor reaches beyond its allocation",
                         index);
    if (!st)
        st = DRIVER(pointer_attribute, index, err, &buffer, DRIVER_BUFFER_ID, at);
    if (!st)
        st = DRIVER(ipc_memory, index, err, &handle, base);
    if (!st)
        st = device_event_record(l->event, l->stream.stream, err);
    device_leave();
    if (st)
        return st;
    put_le64(l->note + 9, at - base);
    put_le64(l->note + 17, base);
    put_le64(l->note + 25, buffer);
    memcpy(l->note + 33, handle.bytes, sizeof handle.bytes);
    memcpy(l->note + 97, l->event->handle.bytes, sizeof l->event->handle.bytes);
    l->note_len = NOTE_IPC;
    return TENREC_OK;
}

static void lend_basic(struct lent *l)
{
    device_event_give(l->event);
    l->event = NULL;
    l->way = WAY_BASIC;
    l->note_len = NOTE_SHORT;
}

static tenrec_status choose(struct lent *l, const struct tenrec_tensor_desc *t, tenrec_error *err)
{
    const struct link *link = l->pipe->link;
    struct cuda *c = cuda_of(l);
    const unsigned ways = c->ways & link->ways;
    const bool both = t->device.kind == TENREC_CUDA && t->target.kind == TENREC_CUDA;

    l->number = l->pipe->link->numbers++;
    if (both && link->same_process && (ways & WAY_BIT(WAY_XTH))) {
        l->way = WAY_XTH;
        return lend_xth(l, err);
    }
    if (both && link->same_host && !link->same_process && (ways & WAY_BIT(WAY_IPC)) &&
        !link->refused[t->device.index % DEVICES_MAX]) {
        l->way = WAY_IPC;
        if (lend_ipc(l, err) == TENREC_OK)
            return TENREC_OK;
        /* Memory of some allocators cannot be shared. */
        agent_log(c->agent, TENREC_LOG_DEBUG, "a tensor is staged: %s", err->text);
    }
    if (!(ways & WAY_BIT(WAY_BASIC)))
        return tenrec_fail(err, TENREC_EUNSUPPORTED,
                           "no channel that both workers list carries it there; cuda_basic would");
    lend_basic(l);
    return TENREC_OK;
}

static void count(struct cuda *c, enum way way)
{
    agent_count(way == WAY_XTH ? &c->xth : way == WAY_IPC ? &c->ipc : &c->basic, 1);
}

/* ---- messages ---- */

void link_take_back(struct pipe *p)
{
    struct link *l = p->link;

    for (uint32_t i = 0; i < l->n_lending; i++)
        if (l->lending[i])
            lent_free(l->lending[i]);
    free(l->lending);
    l->lending = NULL;
    l->n_lending = 0;
}

tenrec_status link_lend(struct pipe *p, const struct tenrec_msg *msg, tenrec_error *err)
{
    struct link *link = p->link;

    link->lending = calloc(msg->n_tensors, sizeof(struct lent *));
    if (!link->lending)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for %u tensors", msg->n_tensors);
    link->n_lending = msg->n_tensors;
    for (uint32_t i = 0; i < msg->n_tensors; i++) {
        const struct tenrec_tensor_desc *t = tenrec_msg_tensor(msg, i);
        struct lent *l;
        tenrec_status st;

        if (!tensor_is_on_device(t))
            continue;
        l = link->lending[i] = calloc(1, sizeof *l);
        if (!l) {
            link_take_back(p);
            return tenrec_fail(err, TENREC_ENOMEM, "no memory for a tensor");
        }
        pipe_ref(p);
        l->pipe = p;
        l->data = t->data;
        l->bytes = t->bytes;
        l->stream = (struct tenrec_stream){ t->device, t->stream };
        st = choose(l, t, err);
        if (st) {
            tenrec_error_prefix(err, "tensor %u", i);
            link_take_back(p);
            return st;
        }
        l->note[0] = (unsigned char)(NOTE_KIND + l->way);
        put_le64(l->note + 1, l->number);
    }
    return TENREC_OK;
}

void link_put_note(struct pipe *p, struct out *o, uint32_t tensor, struct descriptor_note *note)
{
    struct lent *l = p->link->lending[tensor];

    l->out = o;
    o->parts++;
    note->len = l->note_len;
    memcpy(note->bytes, l->note, l->note_len);
}

void link_lent(struct pipe *p)
{
    struct link *link = p->link;
    struct cuda *c = &p->agent->cuda;
    struct lent **all = link->lending;
    const uint32_t n = link->n_lending;

    link->lending = NULL;
    link->n_lending = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct lent *l = all[i];

        if (!l)
            continue;
        l->next = c->lent;
        l->prev = &c->lent;
        if (c->lent)
            c->lent->prev = &l->next;
        c->lent = l;
        count(c, l->way);
        if (l->way == WAY_XTH) {
            c->flights.lookouts++;
            flights_look_soon(&c->flights);
        }
    }
    for (uint32_t i = 0; i < n; i++)
        if (all[i] && all[i]->way == WAY_BASIC)
            pump(all[i]);
    free(all);
}

void link_greeted(struct pipe *p)
{
    link_receive_handed(p);
    while (pipe_send_device_message(p))
        continue;
}

/* ---- what the peer says, and what becomes of it without him ---- */

static struct lent *find(struct pipe *p, uint64_t number)
{
    struct lent *l = p->agent->cuda.lent;

    while (l && !(l->pipe == p && l->way == WAY_IPC && l->number == number))
        l = l->next;
    return l;
}

bool lent_taken(struct pipe *p, uint64_t number)
{
    struct lent *l = find(p, number);

    if (l)
        lent_end(l);
    return l != NULL;
}

bool lent_refused(struct pipe *p, uint64_t number)
{
    struct lent *l = find(p, number);
    struct cuda *c = &p->agent->cuda;
    tenrec_error err;

    if (!l)
        return false;
    agent_count(&c->refused, 1);
    p->link->refused[l->stream.device.index % DEVICES_MAX] = true;
    agent_log(p->agent, TENREC_LOG_INFO,
              "\"%s\" cannot map memory of cuda:%d: tensors from there are staged",
              p->outgoing ? p->to->name : p->remote_name, (int)l->stream.device.index);
    lend_basic(l);
    if (!(c->ways & p->link->ways & WAY_BIT(WAY_BASIC))) {
        tenrec_fail(&err, TENREC_EUNSUPPORTED,
                    "the memory cannot be mapped there, and cuda_basic is not listed by both");
        lent_failed(l, &err);
    }
    pump(l);
    return true;
}

/* Its process is gone, as far as we were told who it is, or it had time enough. */
static bool orphan_is_over(const struct lent *l)
{
    return now_ns() >= l->orphan_ns ||
           (l->pipe->pid && kill(l->pipe->pid, 0) != 0 && errno == ESRCH);
}

/* Loans and orphans tell nobody: one looks at them. */
void lent_look(struct flights *fs)
{
    struct cuda *c = CONTAINER(fs, struct cuda, flights);
    struct lent *l, *next;

    for (l = c->lent; l && fs->lookouts; l = next) {
        bool over = false;

        next = l->next;
        if (l->way == WAY_XTH) {
            over = loan_end(l->loan, pipe_state(l->pipe) == PIPE_BROKEN);
            if (over)
                l->loan = NULL;
        } else if (l->orphan_ns) {
            over = orphan_is_over(l);
        }
        if (!over)
            continue;
        fs->lookouts--;
        lent_end(l);
    }
}

void lent_of_broken(struct pipe *p)
{
    struct cuda *c = &p->agent->cuda;
    struct lent *l, *next;

    for (l = c->lent; l; l = next) {
        next = l->next;
        if (l->pipe != p)
            continue;
        l->stopped = true;
        l->waits = false;
        if (l->way == WAY_IPC && !l->orphan_ns) {
            l->orphan_ns = now_ns() + ORPHAN_NS;
            c->flights.lookouts++;
        }
        if (lent_is_done(l))
            lent_end(l);
    }
    if (c->flights.lookouts)
        flights_look_soon(&c->flights);
}
