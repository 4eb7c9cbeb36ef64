/* SPDX-License-Identifier: Apache-2.0 */
/* link.h - tensors in memory of devices, on one pipe.
 *
 * The channel "tenrec_cuda" has one connection, which carries what is said below
 * and the bytes of tensors that are staged, both ways; the loop thread alone reads
 * it. How a tensor travels the sender chooses, and says in the note beside it:
 *
 *     cuda_xth    number: both workers are in this process, and the receiver copies
 *                 from where the tensor is (handover.c)
 *     cuda_ipc    handles: the receiver maps the sender's allocation and copies
 *     cuda_basic  number: the bytes come in pieces over the connection, out of and
 *                 into pinned memory. Also from the host to a device, and back
 *
 * A message with such tensors is taken by the loop thread on both sides: there it
 * may be overtaken by others. The driver is never called with a lock held. */
#ifndef TENSORPIPE_CUDA_LINK_H
#define TENSORPIPE_CUDA_LINK_H

#include "cuda/device.h"
#include "options.h"
#include "reactor/reactor.h"
#include "wire/descriptor.h"

#include <pthread.h>

/* inflight.c: device work that is not known to be complete.
 *
 * No thread waits for a device: while work is in flight the loop thread polls from time to time,
 * every 10 us at first and every millisecond while nothing completes. (The driver could call us
 * instead. It does not when an earlier work of the stream has failed, and then the message would
 * wait for ever.) Works of one stream complete in order. All of it is the loop thread's. */

struct inflight {
    struct inflight *next;
    struct device_event *event; /* owns; recorded behind the work */
    struct tenrec_stream stream;
    /* `why` is NULL when it is done, else the driver failed. Takes `f`. */
    void (*landed)(struct inflight *f, const tenrec_error *why);
};

struct inflight_list {
    struct reactor *reactor;
    struct reactor_timer timer;
    struct inflight *first, **last;
    bool spins; /* asks without a pause at first */
    uint64_t gap_ns, spin_until_ns;
    unsigned lookouts;                     /* events other than works in flight to poll for */
    void (*look)(struct inflight_list *f); /* at those; after each round */
};

void inflight_list_init(struct inflight_list *fs, struct reactor *r, bool spins,
                        void (*look)(struct inflight_list *fs));
/* Queues a copy on `s` (device_copy), and polls for its completion. After a failure no copy is
 * under way, and `landed` is not called. */
tenrec_status inflight_copy(struct inflight_list *fs, struct inflight *f,
                            const struct tenrec_stream *s, void *to, const void *from,
                            uint64_t bytes, tenrec_error *err);
/* Something else is worth looking at soon. */
void inflight_list_look_soon(struct inflight_list *fs);
/* Polls until nothing is left, for `ms` at most. Returns false if something is. */
bool inflight_list_finish(struct inflight_list *fs, uint32_t ms);

/* staging.c: pinned memory of the host, through which tensors go from and to
 * devices in pieces. One agent's; of any thread. */

#define STAGING_PIECE ((uint64_t)1 << 20) /* bytes */

struct staging_piece {
    struct staging_piece *next;
    unsigned char *data;
    int device; /* whose context made it; any can use it */
};

struct staging {
    pthread_mutex_t lock;
    struct staging_piece *free; /* under lock */
    uint64_t made, max;         /* pieces, under lock */
};

void staging_init(struct staging *s, uint64_t max_bytes);
/* Once all have been returned. */
void staging_finish(struct staging *s);

/* errors   EAGAIN (all are in use; one will be returned), ENOMEM, EOS */
tenrec_status staging_get(struct staging *s, int device, struct staging_piece **ret,
                          tenrec_error *err);
void staging_give(struct staging *s, struct staging_piece *piece);

struct endpoint;
struct conn;
struct link;
struct send_request;
struct pipe;
struct arriving;
struct lent;
struct piece_out;

/* An agent's part, on the loop thread but where it says otherwise. */
struct cuda {
    struct endpoint *ep;
    unsigned methods;      /* of the options */
    atomic_bool holds;     /* devices_hold was called */
    atomic_uint n_devices; /* to be offered */
    struct inflight_list inflight;
    struct staging out, in; /* apart, or two workers that only send would wait for ever */
    struct lent *lent;      /* what peers read, or what is being staged */
    struct link *starved;   /* links that wait for a piece of `in` */
    bool out_starved;       /* some tensor waits for a piece of `out` */
    pthread_mutex_t lock;
    struct piece_out *written; /* under lock: pieces that left */
    struct reactor_task task;
    atomic_uint_fast64_t sent[4]; /* tensors by method; [0]: refused by the peer */
};

/* Once per agent, before its loop runs; and when it runs no more. */
void cuda_init(struct cuda *c, struct endpoint *ep);
void cuda_finish(struct cuda *c);
/* On the loop thread, when all pipes are broken: waits for devices, a while. */
void cuda_stop(struct cuda *c);
/* The operations of the core. */
tenrec_status cuda_devices(struct cuda *c, const struct tenrec_device_ops **ret, uint32_t *ret_n,
                           tenrec_error *err);
/* No device: peers may have some, and get tensors there. */
tenrec_status cuda_use(struct cuda *c, const struct tenrec_device *device, uint32_t n,
                       tenrec_error *err);
/* Returns true if the options list a channel of devices. */
bool cuda_is_offered(const struct tp_options *request);
/* For the three channels: returns true if it works here, else the reason in `why`. Loads the
 * driver. */
bool cuda_viable(char why[], size_t cap);
void cuda_tell(struct cuda *c, tenrec_sink_fn *sink, void *arg);

/* ---- pipes ---- */

static inline bool tensor_is_on_device(const struct tenrec_tensor_desc *t)
{
    return t->bytes && (t->device.kind == TENREC_CUDA || t->target.kind == TENREC_CUDA);
}

/* Returns true if the message has a tensor for the link. */
static inline bool link_concerns(const struct tenrec_msg *msg)
{
    for (uint32_t i = 0; i < msg->n_tensors; i++)
        if (tensor_is_on_device(tenrec_msg_tensor(msg, i)))
            return true;
    return false;
}

/* Whether a note is the link's. */
bool link_is_note(struct nop_bytes note);

/* On the loop thread: the pipe is open, is broken, is about to be freed; bytes arrived on the
 * connection; messages wait in pipe->device_sends or were handed over. */
void link_open(struct pipe *p);
/* Announces to the peer that this process uses devices now. */
void link_hello_again(struct pipe *p);
void link_broken(struct pipe *p);
void link_close(struct pipe *p);
void link_arrived(struct pipe *p, struct conn *c);
void link_run(struct pipe *p);

/* Sending, on the loop thread: what becomes of each tensor is decided before the
 * message is encoded, under the pipe's lock; `out` is its part then. */
tenrec_status link_lend(struct pipe *p, const struct tenrec_msg *msg, tenrec_error *err);
void link_put_note(struct pipe *p, struct send_request *request, uint32_t tensor,
                   struct descriptor_note *note);
void link_lent(struct pipe *p);      /* the message is queued */
void link_take_back(struct pipe *p); /* it was not */

/* Receiving, by the reader of the pipe. A tensor was announced: `in` is NULL before the
 * message's first. errors: EPROTOCOL, ENOMEM */
tenrec_status link_announced(struct pipe *p, struct arriving **in, uint32_t n, uint32_t tensor,
                             struct nop_bytes note, const struct descriptor_tensor *t,
                             tenrec_error *err);
/* The rest of the message has arrived. Takes `in` and msg (NULL: it is not wanted, `why` says
 * why). */
void link_hand_over(struct pipe *p, struct arriving *in, struct tenrec_msg *msg, int32_t type,
                    int64_t id, const tenrec_error *why);
void link_drop_arriving(struct arriving *in); /* NULL is fine */

#endif
