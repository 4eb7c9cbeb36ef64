/* SPDX-License-Identifier: Apache-2.0 */
/* tenrec/agent.h - the contract between the core and whoever moves messages.
 *
 * Agents form a chain. The core talks to the outermost; `inner` points one
 * step nearer to the wire, `outer` one step nearer to the user.
 *
 *     core -> faulty -> tensorpipe -> wire        send goes inwards
 *     core <- faulty <- tensorpipe <- wire        deliver goes outwards
 *
 * An op that is NULL, or that lies beyond ops->size, is skipped: the core goes
 * on with the next agent of the chain. So a wrapper implements only what it
 * changes, and a wrapper built before an op existed still lets it through.
 *
 * Threads: send, deliver, poll, lead, resume, disconnect and debug_info come from
 * any thread, concurrently. start, member_joined, member_left, drain, shutdown
 * and destroy come one at a time. Hold no lock of yours while calling inwards,
 * outwards or the host.
 */
#ifndef TENREC_AGENT_H
#define TENREC_AGENT_H

#include <stdbool.h>
#include <tenrec/error.h>
#include <tenrec/message.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tenrec_agent;
struct tenrec_host;
struct tenrec_sharing; /* opaque: what a connection's two ends have of each other's memory */

/* Told exactly once per send: err == NULL means handed to the wire. May be
 * called from any thread, also from inside send. `err` is valid during the
 * call only. fn may be NULL: the sender needs no notice.
 * frozen: passed by value. */
struct tenrec_done {
    void (*fn)(void *arg, const tenrec_error *err);
    void *arg;
};

/* One member of the group. Strings live until shutdown. */
struct tenrec_member {
    uint32_t size; /* sizeof(struct tenrec_member), the step of the array */
    tenrec_peer id;
    uint64_t incarnation; /* differs between two lives of the same id */
    const char *name;
    const char *address; /* what its agent said, or "" */

    /* 64 random bits of that life, which its record in the store tells: a
     * caller that knows them is that member, or has read the store. Do not send them to a
     * peer that has not shown that it knows them. 0: the record has none. */
    uint64_t token;
};

/* What a thread waits for that lends itself to poll. */
struct tenrec_wait {
    uint32_t size;
    int32_t wake_fd;      /* an eventfd; whoever makes done() true from another
                             thread writes 1 to it. The poller reads it away */
    uint64_t deadline_ns; /* CLOCK_MONOTONIC; 0 = none */
    bool (*done)(void *arg);
    void *arg;
};

/* True when `table` is long enough to have `member`, and has it set. */
#define TENREC_HAS(table, member)                                                                  \
    ((table)->size >= (size_t)((const char *)&(table)->member - (const char *)(table)) +           \
                          sizeof((table)->member) &&                                               \
     (table)->member)

/* What the core needs of devices of one kind. These are functions
 * of the process, not of an agent: tensors and futures outlive workers, so the
 * core may call them when the agent is long gone, and keeps the plugin mapped once
 * it has the table. From any thread, several at once. Only stream_wait waits for
 * a device. Each leaves the thread's current device (context) as it was. */
struct tenrec_device_ops {
    uint32_t size; /* sizeof(struct tenrec_device_ops) */
    int32_t kind;  /* enum tenrec_device_kind */

    /* One of the streams of a pool, in turn; they are never destroyed. */
    tenrec_status (*stream_get)(int32_t index, uint64_t *ret, tenrec_error *err);

    /* What is queued on `then` from now on waits for what is queued on `first`
     * now. Their devices may differ. */
    tenrec_status (*stream_order)(const struct tenrec_stream *first,
                                  const struct tenrec_stream *then, tenrec_error *err);

    /* Blocks until all that is queued on `s` has been done. */
    tenrec_status (*stream_wait)(const struct tenrec_stream *s, tenrec_error *err);

    /* Memory of s->device that may be used on `s` at once; bytes >= 1. ENOMEM. */
    tenrec_status (*memory_new)(const struct tenrec_stream *s, uint64_t bytes, void **ret,
                                tenrec_error *err);

    /* Frees it when what is queued on `s` now has been done; `s` as given to
     * memory_new. */
    void (*memory_drop)(const struct tenrec_stream *s, void *data);

    /* Queues a copy on `s`: memory of the host or of any device of this kind on
     * either side. Memory of the host that is not pinned may be waited for. */
    tenrec_status (*copy)(const struct tenrec_stream *s, void *to, const void *from, uint64_t bytes,
                          tenrec_error *err);
};

struct tenrec_agent_ops {
    uint32_t size; /* sizeof(struct tenrec_agent_ops) */
    uint32_t reserved;
    const struct tenrec_extension *extensions; /* NULL: none */

    /* Where peers reach this agent, e.g. "uv://10.0.0.3:41234". Asked once,
     * between init and start; the core carries it to the others through the
     * store. Owned by the agent, lives as long. */
    const char *(*address)(struct tenrec_agent *self);

    /* Begin to serve. From now on deliver may be called. Runs from the
     * innermost agent outwards, when all `n` members have told their address;
     * `member` is borrowed during the call, its strings live until shutdown.
     * May block, at most for the backend's own connect timeout. A wrapper may
     * see send and deliver a moment before its own start, because the agents
     * inside it serve already. */
    tenrec_status (*start)(struct tenrec_agent *self, const struct tenrec_member *member,
                           uint32_t n, tenrec_error *err);

    /* The group changed (elastic groups). `member` as above. */
    void (*member_joined)(struct tenrec_agent *self, const struct tenrec_member *member);
    void (*member_left)(struct tenrec_agent *self, tenrec_peer id);

    /* Carry `msg` to `to`, or along msg->route when that is set. Takes the
     * message always, and tells `done` exactly once. Does not block on the
     * network unless the message says TENREC_MSG_MAY_WAIT. Mandatory for an
     * agent that wraps nothing.
     *
     * Each tensor's `target` says where the receiver shall have
     * it. One in device memory has a `stream` on which it is ready: queue work
     * and record events on it as you like until you release the message, and
     * release it only when the device does not read its memory any more. What
     * cannot be carried: EUNSUPPORTED. */
    void (*send)(struct tenrec_agent *self, tenrec_peer to, struct tenrec_msg *msg,
                 struct tenrec_done done);

    /* Look at a message on its way to the user. Wrappers only. Takes it. */
    void (*deliver)(struct tenrec_agent *self, tenrec_peer from, struct tenrec_msg *msg);

    /* A thread that waits for an answer from `peer` lends itself: read and
     * deliver what comes from there until wait->done() or the deadline.
     * Returns OK then, and EUNSUPPORTED at once when there is nothing to
     * read from (the core then waits by itself). */
    tenrec_status (*poll)(struct tenrec_agent *self, tenrec_peer peer,
                          const struct tenrec_wait *wait);

    /* host->accepts says yes again: go on reading. */
    void (*resume)(struct tenrec_agent *self);

    /* Drop the connection to `peer`; its pending calls fail with EPEER_LOST.
     * A later send connects again. EUNSUPPORTED when there are none. */
    tenrec_status (*disconnect)(struct tenrec_agent *self, tenrec_peer peer, tenrec_error *err);

    /* Wait until every accepted send has been told done, at most `ms`
     * milliseconds. ETIMEDOUT when some are left. Every agent of the chain is
     * asked, outermost first; so are disconnect and resume. */
    tenrec_status (*drain)(struct tenrec_agent *self, uint32_t ms, tenrec_error *err);

    /* Stop. Tell done to what is pending (ECANCELED) and join your threads:
     * when this returns none of your code runs or will run until destroy, but
     * a send that another thread was just making (tell it ECANCELED too).
     * Runs from the outermost agent inwards; not when start failed or never
     * ran. */
    void (*shutdown)(struct tenrec_agent *self);

    /* Free self->impl; comes always, also when start failed or never ran. Do
     * not touch self->inner: the core owns the chain. */
    void (*destroy)(struct tenrec_agent *self);

    /* Push counters and states, for people. Every agent of the chain is
     * asked; the core puts "<backend>." before each key. */
    void (*debug_info)(struct tenrec_agent *self, tenrec_sink_fn *sink, void *arg);

    /* The devices from and to which this agent carries tensors:
     * what they can do, and their number in *ret_n (indices 0 to n - 1).
     * EUNSUPPORTED, with the reason, when there are none. Makes no context. Asked
     * between init and address, or once some member's maps name this worker. */
    tenrec_status (*devices)(struct tenrec_agent *self, const struct tenrec_device_ops **ret,
                             uint32_t *ret_n, tenrec_error *err);

    /* The worker's list of devices, by index: make them ready, as
     * a peer may send there before the program has touched them. Before start,
     * and again with all of them when there are more (elastic groups). Maybe none:
     * tensors of the host will go to devices of peers. */
    tenrec_status (*use_devices)(struct tenrec_agent *self, const struct tenrec_device *device,
                                 uint32_t n, tenrec_error *err);

    /* Would a message that is sent now to `peer`, or along `route` when its
     * generation is not 0, carry memory that host->share knows as a mapping? A guess that
     * costs little: who would else send from private memory copies it into such first. */
    bool (*maps)(struct tenrec_agent *self, tenrec_peer peer, struct tenrec_route route);

    /* A thread that runs what comes lends itself: until wait->done() or
     * the deadline it reads and delivers what comes from anybody, as your own thread
     * would, which rests meanwhile and goes on when this returns. Returns OK then, and
     * EUNSUPPORTED at once when that cannot be now: another thread leads already, or
     * the agent does not serve. wait->wake_fd may be -1. Shutdown ends it, too. */
    tenrec_status (*lead)(struct tenrec_agent *self, const struct tenrec_wait *wait);
};

/* One link of the chain. The core allocates it; init_agent sets ops and impl.
 * The rest is read-only for plugins. */
struct tenrec_agent {
    const struct tenrec_agent_ops *ops;
    void *impl;
    const struct tenrec_host *host;
    struct tenrec_agent *inner; /* NULL at the wire */
    struct tenrec_agent *outer; /* NULL at the user */
};

/* What the core does for plugins. Grows at its end only. */
struct tenrec_host {
    uint32_t size; /* sizeof(struct tenrec_host) */
    uint16_t abi_major, abi_minor;
    const struct tenrec_extension *extensions; /* NULL: none */

    /* Continue inwards / outwards from `self`. Both take the message. What is
     * delivered came from msg_new and, when it has tensors, from place. */
    void (*send_inner)(struct tenrec_agent *self, tenrec_peer to, struct tenrec_msg *msg,
                       struct tenrec_done done);
    void (*deliver_outer)(struct tenrec_agent *self, tenrec_peer from, struct tenrec_msg *msg);

    /* Call fn(arg) after `ms` milliseconds on a core thread; before shutdown
     * of `self` begins at the latest, then on the thread that shuts down.
     * ENOMEM; ESHUTDOWN from then on. */
    tenrec_status (*after)(struct tenrec_agent *self, uint32_t ms, void (*fn)(void *arg),
                           void *arg);

    /* A message to fill from the wire: zeroed, with `payload_len` bytes at
     * ->payload and `n_tensors` zeroed descriptors. NULL: out of memory. */
    struct tenrec_msg *(*msg_new)(struct tenrec_agent *self, uint64_t payload_len,
                                  uint32_t n_tensors);

    /* Where shall its tensors go? Sets data and device of each descriptor:
     * the caller's own buffer, the user's allocator or memory of the core. What
     * is mapped is there already: no bytes of it follow.
     * `target` (kind 0: not told, then the host's memory) is where
     * it shall be and `source` where it was; memory of a device comes with a
     * `stream`, on which it may be written at once. Deliver when the last copy
     * is queued there; what goes to the host, when it is there.
     * Called once per message with tensors, when type, id, payload and
     * descriptors are filled in. ENOMEM, ETOOBIG: then drop the message,
     * skip the tensors' bytes, and answer a request with an EXCEPTION. */
    tenrec_status (*place)(struct tenrec_agent *self, tenrec_peer from, struct tenrec_msg *msg,
                           tenrec_error *err);

    /* False while the pool's queue is full: stop reading requests until
     * resume is called. */
    bool (*accepts)(struct tenrec_agent *self);

    /* The connection on which requests went to `peer` broke: whatever waits
     * for an answer from there fails. Call it before a new connection to the
     * same peer takes messages. */
    void (*peer_lost)(struct tenrec_agent *self, tenrec_peer peer, const tenrec_error *why);

    /* Is a message of this level wanted, and take it. */
    bool (*log_enabled)(struct tenrec_agent *self, enum tenrec_log_level level);
    void (*log)(struct tenrec_agent *self, enum tenrec_log_level level, const char *fmt, ...)
        TENREC_PRINTF(3, 4);

    /* The connection on which requests came from `peer`, who
     * has proved to be that, broke. No call waits for it, but the program
     * wants to know. When both connections break tell both, in any order. */
    void (*caller_lost)(struct tenrec_agent *self, tenrec_peer peer, const tenrec_error *why);

    /* Tensors in shared memory reach a process of this host as a
     * mapping. All of it is optional; what is not shared is carried as bytes.
     *
     * One sharing per connection that can carry descriptors, for both ways. NULL:
     * carry bytes. Close it when nothing is sent or received on it any more. */
    struct tenrec_sharing *(*sharing_open)(struct tenrec_agent *self);
    void (*sharing_close)(struct tenrec_agent *self, struct tenrec_sharing *s);

    /* What to send in the place of desc's bytes; false: carry the bytes. The
     * records arrive in the order of these calls, each after its descriptors,
     * which are the caller's to close once they were sent. What could not be
     * queued is taken back, the last one first; share_back closes its fds. Both
     * may be called with locks of yours held. */
    bool (*share)(struct tenrec_agent *self, struct tenrec_sharing *s,
                  const struct tenrec_tensor_desc *desc, struct tenrec_share *ret);
    void (*share_back)(struct tenrec_agent *self, struct tenrec_sharing *s,
                       struct tenrec_share *share);

    /* A record came: to be called for each, in order, before place. Takes the
     * fds always. Sets desc->mapping, which place or the release of the message
     * takes; desc->bytes is set. NULL: the message is not wanted. EPROTOCOL: end
     * the connection. Others: drop the message, as when place fails. */
    tenrec_status (*shared)(struct tenrec_agent *self, struct tenrec_sharing *s,
                            struct tenrec_share *share, struct tenrec_tensor_desc *desc,
                            tenrec_error *err);
};

static inline void tenrec_done_ok(struct tenrec_done done)
{
    if (done.fn)
        done.fn(done.arg, NULL);
}

TENREC_PRINTF(3, 4)
static inline void tenrec_done_fail(struct tenrec_done done, tenrec_status code, const char *fmt,
                                    ...)
{
    tenrec_error err;
    va_list ap;

    if (!done.fn)
        return;
    va_start(ap, fmt);
    tenrec_vfail(&err, code, fmt, ap);
    va_end(ap);
    done.fn(done.arg, &err);
}

#ifdef __cplusplus
}
#endif

#endif
