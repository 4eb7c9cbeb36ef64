/* SPDX-License-Identifier: Apache-2.0 */
/* pipe.h - one TensorPipe pipe: a handful of connections and a handshake.
 *
 * An outgoing pipe carries our requests and their answers, an incoming one the
 * peer's requests and our answers. A pipe that breaks never recovers; the next
 * send to the peer makes a new one.
 *
 * Locks, none of which is held while a host function or `done` is called:
 *     agent.lock        the table of pipes
 *     pipe->role.lock   the reader of an outgoing pipe
 *     pipe->conns.side_lock the reader of connections that are not data
 *     pipe->lock        the write queues, state, why
 *     reactor->lock     tasks
 * A thread that holds one of them may acquire those below it. peer->lock comes before all. */
#ifndef TENSORPIPE_PIPE_H
#define TENSORPIPE_PIPE_H

#include "pipe/pipe_budget.h"
#include "pipe/pipe_conns.h"
#include "pipe/pipe_handshake.h"
#include "pipe/pipe_identity.h"
#include "pipe/pipe_queue.h"
#include "pipe/pipe_services.h"
#include "pipe/pipe_tensors.h"
#include "reactor/spin.h"
#include "wire/descriptor.h"

enum pipe_state {
    PIPE_CONNECTING, /* outgoing: until the descriptor connection is open */
    PIPE_GREETING,   /* waits for the Brochure, or for the answer to it */
    PIPE_OPENING,    /* waits for the other connections */
    PIPE_ESTABLISHED,
    PIPE_BROKEN,
};

/* A tensor of the message that is being read. */
struct incoming {
    uint64_t len;
    uint64_t from;   /* the channel's: an address of the sender, or a place in the tensor */
    uint64_t number; /* the channel's */
    int how;         /* the channel's: its path; 0: not announced */
    bool on_device;  /* the link brings it (cuda/link/link.h) */
};

/* The message that is being read. */
struct reading {
    atomic_bool paused;              /* the host does not accept requests */
    atomic_uint_fast64_t n_messages; /* received so far */
    enum step { STEP_DESCRIPTOR, STEP_TYPE, STEP_ID, STEP_PAYLOAD, STEP_LIST, STEP_TENSORS } step;
    enum conn_role want;    /* the connection that has the next byte */
    struct tenrec_msg *msg; /* NULL: its bytes are skipped, `why` says why */
    bool skipped;
    bool unparsed; /* the buffers may have unparsed bytes */
    int n_lead;
    int32_t type;
    int64_t id;
    uint64_t len[4];
    uint32_t n_tensors, n_targetless; /* with bytes of their own: storages */
    struct incoming *in;              /* n_tensors of them; owns */
    struct carried *carried;          /* likewise: which tensors of the list are views of them */
    struct arriving *arriving;        /* of tensors on devices; owns; NULL: none */
    uint32_t cap_in;
    uint32_t tensor;
    unsigned char head[FRAME_HEAD]; /* of the tensor's frame */
    size_t head_got;
    bool in_body;         /* of the payload: its header was read */
    uint64_t got;         /* bytes of the body */
    struct iovec lead[2]; /* n_lead: where the next bytes of `want` go */
    tenrec_error why;
    unsigned char begun[4]; /* of the payload of a message that was dropped, ... */
    uint32_t n_begun;       /* ... so many bytes */
    struct reactor_task task;
};

/* The reader of an outgoing pipe: the loop thread for the time of one read, or a
 * caller that waits for its answer. */
struct waiter {
    struct waiter *next;
    int wake_fd;
};

/* A spinning reader also writes what the socket did not take. */
enum role_taken { ROLE_FREE, ROLE_TAKEN, ROLE_SPINS };

struct role {
    atomic_int taken;       /* enum role_taken */
    atomic_bool missed;     /* the loop found it taken: its event is used up */
    atomic_bool quiet;      /* data do not wake the loop; changes under lock */
    atomic_uint n_waiters;  /* changes under lock */
    atomic_uint polls;      /* calls of poll, about */
    atomic_uint streak;     /* of them since a send without a waiter */
    struct spin spin;       /* of the reader */
    unsigned seen;          /* polls at the last tick of the quiet timer */
    struct waiter *waiters; /* under lock */
    pthread_mutex_t lock;
};

#define MESSAGE_TENSORS_MAX 65536 /* of one message: storages, and views of them */
#define TENSORS_KEPT 256          /* so many have room between messages */

struct arriving;
struct carried;
struct plain;

struct pipe_end {
    bool torn_down;
    bool was_established;
    bool seen_empty[2];    /* the sides of `to` since it was taken out */
    struct pipe *next_old; /* of to->old; under its lock, as the last */
    struct reactor_task teardown_task, free_task;
};

struct pipe {
    /* What the path of a small message touches is together, here and at the beginning of each part:
     * after a sleep none of it is in a cache. */
    struct endpoint *ep;
    atomic_int state; /* enum pipe_state; changes under lock */
    atomic_uint refs;
    struct peer *to; /* outgoing */
    struct tenrec_route route;
    bool outgoing;
    tenrec_peer from; /* sender of the incoming messages */
    uint32_t marks;   /* flags of all messages, TENREC_MSG_PROVED or none; once established */
    struct pipe_budget budget;
    struct pipe_queue queue;
    struct role role;
    struct pipe_conns conns;
    struct reading read;
    struct pipe_terms terms;
    struct pipe_caller caller;
    struct pipe_remote remote;
    struct pipe_tensors tensors;
    struct pipe_devices devices;
    struct pipe_handshake handshake;
    struct pipe_end end;
    const struct pipe_services *services;
    pthread_mutex_t lock;
    tenrec_error why;           /* it broke */
    struct reactor_timer timer; /* of the handshake, then of queued requests */
};

static inline enum pipe_state pipe_state(struct pipe *p)
{
    return (enum pipe_state)atomic_load_explicit(&p->state, memory_order_acquire);
}

/* Unanswered requests of an outgoing pipe, or more, since the counters change concurrently. Such a
 * pipe receives answers only. */
static inline int64_t pipe_unanswered(struct pipe *p)
{
    uint64_t answers = atomic_load(&p->read.n_messages);

    return (int64_t)(atomic_load(&p->queue.asked) - answers);
}

/* pipe_services.c */
extern const struct pipe_services pipe_services;

/* pipe_state.c */

/* Names the process at the other end in texts: a worker, or a caller by its own claim. */
#define PIPE_PEER "%s \"%s\""
#define PIPE_PEER_ARGS(p)                                                                          \
    (p)->outgoing ? "worker" : "caller", (p)->outgoing ? (p)->to->name : (p)->remote.name

void pipe_ref(struct pipe *p);
void pipe_unref(struct pipe *p); /* NULL is fine */
/* Posts a task that keeps the pipe until it ran. */
void pipe_post(struct pipe *p, struct reactor_task *t);
/* The pipe is broken from now on; the loop tears it down. The first reason
 * stays. From any thread, without locks. */
void pipe_fail(struct pipe *p, const tenrec_error *why);
TENREC_PRINTF(4, 5)
void pipe_failf(struct pipe *p, tenrec_status code, int os_errno, const char *fmt, ...);
/* Enters the next state, unless the pipe is broken. */
void pipe_advance(struct pipe *p, enum pipe_state to);
/* Which channel was agreed, NULL: none; and whether there is one for devices. */
void pipe_use_channel(struct pipe *p, const struct channel *channel, bool devices);
/* The reader of the pipe takes over what the loop thread reads, and gives it back. */
void pipe_lend_side(struct pipe *p, bool lent);
/* Returns true if the reader of the pipe reads this connection. */
bool pipe_reads(const struct pipe *p, const struct conn *c);
/* Returns true if all connections are open. */
bool pipe_is_complete(const struct pipe *p);
/* Once the channel, the transport and the peer's capabilities are known: decides, as the peer does,
 * whether there is a reply connection. */
void pipe_settle_reply(struct pipe *p);

/* After something was queued, without the lock: ends a pipe whose source holds too much. */
static inline void pipe_bound(struct pipe *p)
{
    if (__builtin_expect(atomic_load_explicit(&p->budget.over, memory_order_relaxed), 0))
        pipe_fail_over_budget(p);
}
/* pipe_queue.c: under the lock ... */

static inline void pipe_queued_add(struct pipe *p, uint64_t n)
{
    atomic_store_explicit(&p->queue.bytes,
                          atomic_load_explicit(&p->queue.bytes, memory_order_relaxed) + n,
                          memory_order_relaxed);
    if (__builtin_expect(p->budget.stranger, 0))
        pipe_charge_source(p, n);
}
void pipe_enqueue(struct pipe *p, struct send_request *o);
bool pipe_enqueue_object(struct pipe *p, enum conn_role role, const void *object, size_t len);

/* ... and without it. */

/* Small messages, for a later flush. */
void pipe_queue_bundle(struct pipe *p, const struct bundle *b);
/* A frame of a head and `len` bytes that stay until `done`. Returns false if it
 * is not sent; `done` is not called then. */
bool pipe_send_frame(struct pipe *p, enum conn_role role, const void *head, size_t head_len,
                     void *data, uint64_t len, struct tenrec_done done);
/* Completes an unqueued segment of `o`; the last segment completes the request. */
void pipe_part_done(struct pipe *p, struct send_request *o);
/* The peer has taken the tensor of that number, or refuses it: then its two buffers are written, of
 * which the first ends with the number. Returns false if it is not awaited. */
bool pipe_tensor_taken(struct pipe *p, uint64_t number);
bool pipe_tensor_refused(struct pipe *p, uint64_t number);
/* Fails all queued messages with the cause of the break. */
void pipe_fail_queue(struct pipe *p);

/* pipe_write.c */

/* Writes what is queued and not held up. */
void pipe_flush(struct pipe *p);
/* The same with the lock, which it releases. */
void pipe_flush_unlock(struct pipe *p);
/* Writes small messages, or queues them behind others. */
void pipe_write_bundle(struct pipe *p, const struct bundle *b);
/* The same in two steps: pipe_take_writing, under the lock, returns true if no bytes precede them;
 * pipe_write_taken then writes without the lock. */
bool pipe_take_writing(struct pipe *p);
void pipe_give_writing(struct pipe *p); /* nothing is written; under the lock */
void pipe_write_taken(struct pipe *p, const struct bundle *b);
/* `c` has become writable. */
void pipe_writable(struct pipe *p, struct conn *c);
/* pipe_is_full returns true if a socket was full; pipe_push retries, and
 * returns true if bytes were written. */
bool pipe_is_full(const struct pipe *p);
bool pipe_push(struct pipe *p);

/* pipe_expire.c: a request with a deadline may wait in a queue of an established pipe. */
void pipe_expire_later(struct pipe *p);

/* Returns true for a request that has an answer. */
static inline bool message_wants_answer(const struct tenrec_msg *msg)
{
    return (msg->type & TENREC_MSG_REQUEST_BIT) && msg->type != TENREC_MSG_ONE_WAY_CALL &&
           msg->type != TENREC_MSG_CANCEL;
}

/* pipe_encode.c, under the lock, as a message with tensors is sent. */

/* Refuses a message that its peer, or the transport, would not take. Before anything else is done
 * for it. errors: ETOOBIG */
tenrec_status send_request_check(const struct pipe *p, const struct tenrec_msg *msg,
                                 tenrec_error *err);
/* Gives those that the peer maps their notes, one for each tensor; the others' are empty. Returns
 * true if all are mapped and no bytes follow. */
bool send_request_share(struct pipe *p, const struct tenrec_msg *msg,
                        struct descriptor_note *notes);
/* The message is not sent after all. */
void send_request_take_back(struct pipe *p, const struct tenrec_msg *msg,
                            const struct descriptor_note *notes);
/* All frames of a message of at most SEND_REQUEST_FEW tensors, of which none is sent. Returns
 * their length; 0: out_encode says what is wrong. */
size_t send_request_encode_small(const struct pipe *p, const struct tenrec_msg *msg,
                                 const struct descriptor_note *notes, unsigned char *to);
/* The frames around a payload that is not copied, and around tensors. Takes nothing
 * on failure. */
tenrec_status send_request_encode(struct pipe *p, struct tenrec_msg *msg,
                                  struct descriptor_note *notes, struct send_request **ret,
                                  tenrec_error *err);

/* pipe_send.c */

/* Takes the message and calls `done` once. */
void pipe_send(struct pipe *p, struct tenrec_msg *msg, struct tenrec_done done);
/* An object on the reply connection. ENOMEM */
tenrec_status pipe_send_object(struct pipe *p, enum conn_role role, const void *object, size_t len);
/* Under the lock, when the handshake is over. now: may be filled instead, when nothing
 * is before it; NULL: it is queued. */
tenrec_status pipe_enqueue_message(struct pipe *p, struct tenrec_msg *msg, struct tenrec_done done,
                                   uint64_t charge, struct bundle *now, tenrec_error *err);
/* Returns true if the loop thread sends the message. */
bool pipe_is_for_link(const struct pipe *p, const struct tenrec_msg *msg);
/* Answers the request `msg`, or replaces the answer `msg`, by an EXCEPTION. */
void pipe_send_exception(struct pipe *p, const struct tenrec_msg *msg, const tenrec_error *why);
/* Takes the message and calls `done`. */
void pipe_refuse(struct tenrec_msg *msg, struct tenrec_done done, const tenrec_error *err);

/* While a thread delivers what it has read at once, what is sent from there
 * gathers in the queues and is written at the end, with one system call. */
struct batch {
    struct batch *outer;
    struct pipe *reading;
    unsigned n;
    struct pipe *dirty[8]; /* other pipes; references */
    unsigned asked;        /* to add to that of `reading` */
    struct bundle bundle;  /* for `reading` */
};

void batch_begin(struct batch *b, struct pipe *reading);
void batch_end(struct batch *b);
/* For a thread that is about to wait in the middle of a delivery. */
void batch_flush_all(void);
/* The batch of this thread; NULL: it does not deliver. */
extern _Thread_local struct batch *batch_now STATIC_TLS;

/* pipe_pending.c */

/* Sends the next message that waits for the link. Returns false if none does. Loop thread. */
bool pipe_send_device_message(struct pipe *p);
/* Encodes what waited for the handshake; then the pipe is established. */
void pipe_send_pending(struct pipe *p);

/* pipe_read.c */

enum read_result { READ_NOTHING, READ_SOME, READ_PAUSED, READ_END };

enum read_how {
    READ_NOW,
    READ_DRAIN,   /* until the socket is empty, because no further event will report it */
    READ_WAITING, /* waits for the first bytes up to CONN_WAIT_MS */
};

/* Reads once or more and delivers all that is whole. Needs the reader's role
 * of an outgoing pipe; of an incoming one, the loop thread. */
enum read_result pipe_read(struct pipe *p, enum read_how how);
void pipe_read_finish(struct pipe *p);

/* pipe_message.c: parts of a message that is being read */

/* Parses a complete message without tensors. Returns false, consuming nothing, if the general path
 * must handle it. */
bool message_plain(struct pipe *p, const struct plain *m);
tenrec_status message_begin(struct pipe *p, const unsigned char *frame, size_t len,
                            tenrec_error *err);
void message_take_type(struct reading *r, const unsigned char *frame);
/* Parses all frames up to the tensors if they are complete and valid. Returns false, consuming
 * nothing, if they must be read one by one. */
bool message_rest(struct pipe *p);
/* Asks the host for the tensors' memory, once their list has arrived. */
void message_place_tensors(struct pipe *p, const unsigned char *frame, size_t len);
/* Fills the tensors of the message, which has more of them afterwards where some share a
 * storage. errors: EPROTOCOL, EUNSUPPORTED, ETOOBIG, ENOMEM */
tenrec_status message_read_list(struct pipe *p, const unsigned char *frame, size_t len,
                                tenrec_error *err);
/* Delivers the complete message, or answers that it was rejected. */
void message_end(struct pipe *p);
/* The same for one that is not being read any more. msg NULL: it could not be taken,
 * `why` says why. */
void message_deliver(struct pipe *p, struct tenrec_msg *msg, int32_t type, int64_t id,
                     const tenrec_error *why);

/* pipe_poll.c */

/* Whether data on this pipe wake the loop. Of an outgoing one with the role's
 * lock, of an incoming one on the loop thread. */
void pipe_set_quiet(struct pipe *p, bool quiet);
bool role_try(struct pipe *p);
/* Returns false if role_try would fail now. */
static inline bool role_free(struct pipe *p)
{
    return !atomic_load_explicit(&p->role.taken, memory_order_relaxed) &&
           !atomic_load_explicit(&p->role.quiet, memory_order_relaxed);
}
void role_leave(struct pipe *p);
/* A request was sent whose sender does not poll: another thread must read the answer. */
void role_request_sent(struct pipe *p);
/* Lets data wake the loop again, unless callers poll. Returns true if it is still quiet. */
bool role_wake_loop(struct pipe *p);
void role_wake_waiters(struct pipe *p);
tenrec_status pipe_poll(struct pipe *p, const struct tenrec_wait *w);

#endif
