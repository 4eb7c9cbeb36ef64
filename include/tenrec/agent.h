/* SPDX-License-Identifier: Apache-2.0 */
/* tenrec/agent.h - the contract between the core and agents, which move messages.
 *
 * Agents form a chain. The core talks to the outermost; `inner` points one step nearer to the wire,
 * `outer` one step nearer to the user.
 *
 *     core -> faulty -> tensorpipe -> wire        send goes inwards
 *     core <- faulty <- tensorpipe <- wire        deliver goes outwards
 *
 * [AG-1] The core skips an op that is NULL, or beyond ops->size, and continues with the next agent
 * of the chain. So a wrapper implements only the ops that it changes, and a wrapper built before an
 * op existed still passes it through.
 *
 * [AG-2] Threads: send, deliver, poll, lead, resume, disconnect, maps and debug_info come from any
 * thread, concurrently. address, devices, use_devices, start, member_joined, member_left, drain,
 * shutdown and destroy come one at a time, but the group may change during drain (member_joined,
 * member_left, devices, use_devices). [AG-3] Hold no lock of the plugin while calling inwards,
 * outwards or the host.
 */
#ifndef TENREC_AGENT_H
#define TENREC_AGENT_H

#include <stdbool.h>
#include <tenrec/error.h>
#include <tenrec/message.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of stack for each thread that a plugin starts: functions and callbacks of the program may
 * run on it, and the default of the system may be 128 KiB (musl, or a small `ulimit -s`). */
#define TENREC_THREAD_STACK ((size_t)8 << 20)

struct tenrec_agent;
struct tenrec_host;
struct tenrec_sharing; /* opaque: memory shared over one connection */
struct sockaddr;

/* [AG-4] Called exactly once per send: err == NULL means handed to the wire. May be called from any
 * thread, also from inside send. `err` is valid during the call only. fn may be NULL: the sender
 * needs no notice. frozen: passed by value. */
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
    const char *address; /* address of its agent, or "" */

    /* [AG-5] 64 random bits of that life, published in its record in the store: a caller that knows
     * them is that member, or has read the store. Send them only to a peer that has proved to know
     * them. 0: the record has none. */
    uint64_t token;

    /* [AG-42] 1: the member is of another group, in which it is alone, as this worker is in its own
     * (tenrec/link.h). Each calls itself 0 and gives the other an id of its own choice, so the
     * member proves to be (0, incarnation, name), and is found by these and its token. Only agents
     * of plugins with TENREC_PLUGIN_LINKS get such members, always by member_joined. */
    uint32_t linked;
    uint32_t reserved;
};

/* The condition that ends poll or lead. */
struct tenrec_wait {
    uint32_t size;
    int32_t wake_fd;      /* an eventfd; a thread that sets *done writes 1 to it. The poller
                             drains it */
    uint64_t deadline_ns; /* CLOCK_MONOTONIC; 0 = none */
    const uint32_t *done; /* the wait is over when this is not 0. Another thread may set it, with
                             release: read it by __atomic_load_n with __ATOMIC_ACQUIRE */
};

/* True if `table` is long enough to have `member`, and `member` is set. */
#define TENREC_HAS(table, member)                                                                  \
    ((table)->size >= (size_t)((const char *)&(table)->member - (const char *)(table)) +           \
                          sizeof((table)->member) &&                                               \
     (table)->member)

/* [AG-33] A plugin that cannot work without a service begins its init by requiring it, and returns
 * what it gets: TENREC_OK if `table`, a struct tenrec_host or tenrec_store_host, has `member`, else
 * EABI with both versions and the member's name in `err`. The services of the first table need no
 * check: those of struct tenrec_host up to peer_lost, and all of struct tenrec_store_host. With
 * tenrec/plugin.h. */
#define TENREC_REQUIRES(table, member, err)                                                        \
    (TENREC_HAS(table, member)                                                                     \
         ? TENREC_OK                                                                               \
         : tenrec_fail((err), TENREC_EABI,                                                         \
                       "this core (plugin ABI %d.%d) lacks the service '%s' that the plugin "      \
                       "(ABI %d.%d) requires: use a newer Tenrec, or an older plugin",             \
                       (int)(table)->abi_major, (int)(table)->abi_minor, #member,                  \
                       TENREC_ABI_MAJOR, TENREC_ABI_MINOR))

/* The first part of the services for plugins of each kind: the size of the whole struct, the ABI of
 * the core, and the log. `self` is what the plugin's init was given; log_enabled returns true if
 * messages of that level are logged, log logs one. From any thread. */
#define TENREC_PLUGIN_HOST                                                                         \
    uint32_t size;                                                                                 \
    uint16_t abi_major, abi_minor;                                                                 \
    bool (*log_enabled)(const void *self, enum tenrec_log_level level);                            \
    void (*log)(const void *self, enum tenrec_log_level level, const char *fmt, ...)               \
        TENREC_PRINTF(3, 4);

/* The operations on devices of one kind. [AG-6] These are functions of the process, not of an
 * agent: tensors and futures outlive workers, so the core may call them after the agent is
 * destroyed, and keeps the plugin mapped once it has the table. From any thread, several at once.
 * Only stream_wait waits for a device. Each restores the thread's current device (context). */
struct tenrec_device_ops {
    uint32_t size; /* sizeof(struct tenrec_device_ops) */
    int32_t kind;  /* enum tenrec_device_kind */

    /* Returns a stream of a pool, in turn; the streams are never destroyed. */
    tenrec_status (*stream_get)(int32_t index, uint64_t *ret, tenrec_error *err);

    /* Makes later work on `then` wait for the work queued on `first` now. Their devices may
     * differ. */
    tenrec_status (*stream_order)(const struct tenrec_stream *first,
                                  const struct tenrec_stream *then, tenrec_error *err);

    /* Blocks until all work queued on `s` is done. */
    tenrec_status (*stream_wait)(const struct tenrec_stream *s, tenrec_error *err);

    /* Memory of s->device that may be used on `s` at once; bytes >= 1. ENOMEM. */
    tenrec_status (*memory_new)(const struct tenrec_stream *s, uint64_t bytes, void **ret,
                                tenrec_error *err);

    /* Frees the memory when the work queued on `s` now is done; `s` as given to
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

    /* [AG-7] The address for peers, such as "uv://10.0.0.3:41234". Called once, between init and
     * start; the core publishes it in the store. Owned by the agent, lives as long. A plugin that
     * proves nothing is refused in the modes of security unless only processes of this host reach
     * it: behind "://" stands "@" (an abstract socket), "/" (a path) or a loopback address. */
    const char *(*address)(struct tenrec_agent *self);

    /* [AG-8] Begin to serve. From now on deliver may be called. Runs from the innermost agent
     * outwards, when all `n` members have published their address; `member` is borrowed during the
     * call, its strings live until shutdown. May block, at most for the backend's own connect
     * timeout. A wrapper may receive send and deliver before its own start, because the agents
     * inside it already serve. */
    tenrec_status (*start)(struct tenrec_agent *self, const struct tenrec_member *member,
                           uint32_t n, tenrec_error *err);

    /* [AG-9] The group changed (elastic groups). `member` as above. */
    void (*member_joined)(struct tenrec_agent *self, const struct tenrec_member *member);
    void (*member_left)(struct tenrec_agent *self, tenrec_peer id);

    /* [AG-10] Carry `msg` to `to`, or along msg->route when that is set. Takes the message always,
     * and calls `done` exactly once. Must not block on the network unless the message has
     * TENREC_MSG_MAY_WAIT. Mandatory for the innermost agent. A wrapper that replaces `msg` by
     * one of its own keeps type, id, key_len, deadline_ns, flags and route.
     *
     * [AG-40] Release `msg` when no byte of its payload and tensors is read any more, here or by
     * the receiver: its owner may then change that memory, or withdraw it from its peers (regions).
     * Only memory that host->share has lent is read later.
     *
     * [AG-37] If the address of `to` refuses the connection, as no process listens there, `done`
     * has ECONNECT with os_errno ECONNREFUSED: that member has ended, and a graceful shutdown
     * waits for it no longer.
     *
     * [AG-11] Each tensor's `target` is the device for the receiver. A tensor in device memory has
     * a `stream` on which it is ready: work and events may be queued on it until the message is
     * released; release the message only when the device no longer reads the memory. EUNSUPPORTED
     * for a tensor that cannot be carried. */
    void (*send)(struct tenrec_agent *self, tenrec_peer to, struct tenrec_msg *msg,
                 struct tenrec_done done);

    /* [AG-12] Reads a message on its way to the user. Wrappers only. Takes it. */
    void (*deliver)(struct tenrec_agent *self, tenrec_peer from, struct tenrec_msg *msg);

    /* [AG-13] A thread that waits for an answer from `peer` polls: read and deliver messages from
     * there until *wait->done is set or the deadline. Returns OK then, and EUNSUPPORTED at once if
     * there is no connection to read from (the core then waits without the agent). */
    tenrec_status (*poll)(struct tenrec_agent *self, tenrec_peer peer,
                          const struct tenrec_wait *wait);

    /* [AG-14] host->accepts returns true again: continue to read. */
    void (*resume)(struct tenrec_agent *self);

    /* [AG-15] Drop the connection to `peer`; its pending calls fail with EPEER_LOST. A later send
     * connects again. EUNSUPPORTED if the agent has no connections. */
    tenrec_status (*disconnect)(struct tenrec_agent *self, tenrec_peer peer, tenrec_error *err);

    /* [AG-16] Wait until `done` was called for every accepted send, at most `ms` milliseconds; then
     * ETIMEDOUT. Called for every agent of the chain, outermost first, as are disconnect and
     * resume. */
    tenrec_status (*drain)(struct tenrec_agent *self, uint32_t ms, tenrec_error *err);

    /* [AG-17] Stop. Call `done` of pending sends (ECANCELED) and join all threads: after the return
     * no code of the plugin runs until destroy, except a concurrent send of another thread
     * (ECANCELED, too). Runs from the outermost agent inwards; not if start failed or never ran. */
    void (*shutdown)(struct tenrec_agent *self);

    /* [AG-18] Free self->impl; always called, also if start failed or never ran. Do not touch
     * self->inner: the core owns the chain. */
    void (*destroy)(struct tenrec_agent *self);

    /* [AG-19] Push counters and states, for people. Called for every agent of the chain; the core
     * puts "<backend>." before each key. */
    void (*debug_info)(struct tenrec_agent *self, tenrec_sink_fn *sink, void *arg);

    /* [AG-20] The devices from and to which this agent carries tensors: their operations, and their
     * number in *ret_n (indices 0 to n - 1). EUNSUPPORTED, with the reason, if there are none.
     * Creates no context. Called between init and start, or once the maps of some member name this
     * worker. */
    tenrec_status (*devices)(struct tenrec_agent *self, const struct tenrec_device_ops **ret,
                             uint32_t *ret_n, tenrec_error *err);

    /* [AG-21] The worker's list of devices, by index: prepare them, as a peer may send there before
     * the program uses them. Called before start, and again with the whole list when it grows
     * (elastic groups). May be empty: tensors of the host will go to devices of peers. */
    tenrec_status (*use_devices)(struct tenrec_agent *self, const struct tenrec_device *device,
                                 uint32_t n, tenrec_error *err);

    /* [AG-22] Returns true if a message sent now to `peer`, or along `route` if its generation is
     * not 0, would probably carry memory of host->share as a mapping. A cheap guess: a sender with
     * private memory then copies it into shared memory first. */
    bool (*maps)(struct tenrec_agent *self, tenrec_peer peer, struct tenrec_route route);

    /* [AG-23] A thread that runs functions leads: until *wait->done is set or the deadline it reads
     * and delivers messages of all peers in place of the thread of the agent, which pauses
     * meanwhile. Returns OK then, and EUNSUPPORTED at once if another thread leads already, or the
     * agent does not serve. wait->wake_fd may be -1. Shutdown ends it, too. */
    tenrec_status (*lead)(struct tenrec_agent *self, const struct tenrec_wait *wait);
};

/* An optional extension of struct tenrec_agent_ops, for agents whose options change while they run.
 * Grows at its end: the extension has its size. */
struct tenrec_reconfigure {
    struct tenrec_extension extension; /* TENREC_EXTENSION_RECONFIGURE */

    /* Puts other options in force; these and the former ones are borrowed until destroy. One call
     * at a time, after start and before shutdown, and none during member_joined and member_left. On
     * any thread, also one of the agent: may not block.
     *
     * errors   ECONFIG, ENOMEM; nothing has changed then */
    tenrec_status (*change)(struct tenrec_agent *self, const void *options, tenrec_error *err);
};

#define TENREC_EXTENSION_RECONFIGURE 4u

/* An optional extension of struct tenrec_agent_ops, for agents that know how far a message has
 * arrived. Grows at its end: the extension has its size. */
struct tenrec_traffic {
    struct tenrec_extension extension; /* TENREC_EXTENSION_TRAFFIC */

    /* [AG-38] Add the bytes that arrived from peer `id` so far to received[id], for each id below
     * `n`: on all connections with it, and before their message is complete. A connection that
     * ended may be left out. So a member of a dynamic group that sends or receives a large tensor
     * is not taken for dead, though its small messages wait behind it. From any thread, also while
     * the agent starts or stops; may not block. */
    void (*received)(struct tenrec_agent *self, uint64_t *received, uint32_t n);
};

#define TENREC_EXTENSION_TRAFFIC 5u

/* One link of the chain. The core allocates it; init_agent sets ops and impl.
 * The rest is read-only for plugins. Grows at its end: allocated by the core only. */
struct tenrec_agent {
    const struct tenrec_agent_ops *ops;
    void *impl;
    const struct tenrec_host *host;
    const char *log_part;       /* of its log lines */
    struct tenrec_agent *inner; /* NULL at the wire */
    struct tenrec_agent *outer; /* NULL at the user */
};

/* The bytes that callers that are no members make this process hold, and the work. A backend has an
 * account for each source of such callers (an address, say), because connections are free to them:
 * a limit for each connection would limit nothing. The accounts of all backends of the process have
 * one sum. Counted: the messages that are charged to it keep it. frozen: allocated by the core,
 * which has more behind it. */
struct tenrec_account {
    uint32_t own[4]; /* the backend's, for what it counts by source; zeros at first */
};

/* frozen: two numbers, passed by address. */
struct tenrec_account_limits {
    uint64_t all; /* bytes of all accounts */
    uint64_t own; /* bytes of the account; UINT64_MAX: no limit */
};

struct tenrec_budget {
    uint32_t size; /* sizeof(struct tenrec_budget); grows at its end */
    uint32_t reserved;
    struct tenrec_account *(*open)(void); /* of no source. NULL: out of memory */
    void (*close)(struct tenrec_account *a);
    /* Charges `n` bytes in any case. Returns true while both limits hold. An account that held
     * nothing may exceed its own limit, by one message larger than that; none exceeds that of all.
     */
    bool (*charge)(struct tenrec_account *a, uint64_t n,
                   const struct tenrec_account_limits *limits);
    void (*give)(struct tenrec_account *a, uint64_t n);
    /* Charges `n` bytes only while both limits hold. errors: EAGAIN */
    tenrec_status (*take)(struct tenrec_account *a, uint64_t n,
                          const struct tenrec_account_limits *limits, tenrec_error *err);
    /* Says which limits do not hold. Returns EAGAIN. */
    tenrec_status (*refuse)(const struct tenrec_account *a,
                            const struct tenrec_account_limits *limits, tenrec_error *err);
    /* `msg`, of msg_new, takes `n` bytes that are charged, until its release. What the core makes
     * of it, such as the values of its payload, is charged likewise and refused beyond the limits.
     * Once, before it is delivered. */
    void (*carry)(struct tenrec_msg *msg, struct tenrec_account *a, uint64_t n,
                  const struct tenrec_account_limits *limits);

    /* The account of where a connection comes from, for close: of an IPv4 address, of an IPv6
     * network of 64 bits, or, for a Unix socket, of that process of this host. `owner`, an address
     * of the backend's, keeps the accounts of backends apart. NULL: out of memory. */
    struct tenrec_account *(*source)(const void *owner, const struct sockaddr *from,
                                     uint32_t process);
    /* Returns false if connections of the source have begun `at_once` proofs of membership, and 32
     * more in each second since, and none was let in. `now_ns` does not decrease. `a`: of source,
     * or NULL for a source without limit. */
    bool (*may_prove)(struct tenrec_account *a, uint32_t at_once, uint64_t now_ns);
    /* A connection was let in: the proofs of its source have no limit while the account is in use.
     * NULL is fine. */
    void (*admit)(struct tenrec_account *a);
};

/* Services of the core for plugins. Grows at its end only. */
struct tenrec_host {
    TENREC_PLUGIN_HOST
    const struct tenrec_extension *extensions; /* NULL: none */

    /* Continue inwards / outwards from `self`. Both take the message. [AG-24] A delivered message
     * comes from msg_new and, if it has tensors, from place. Its key_len and deadline_ns are those
     * of the sent one, or 0 where the backend does not carry them. */
    void (*send_inner)(struct tenrec_agent *self, tenrec_peer to, struct tenrec_msg *msg,
                       struct tenrec_done done);
    void (*deliver_outer)(struct tenrec_agent *self, tenrec_peer from, struct tenrec_msg *msg);

    /* [AG-25] Call fn(arg) after `ms` milliseconds on a core thread; before shutdown of `self`
     * begins at the latest, then on the thread that shuts down. ENOMEM; ESHUTDOWN from then on. */
    tenrec_status (*after)(struct tenrec_agent *self, uint32_t ms, void (*fn)(void *arg),
                           void *arg);

    /* A message to fill from the wire: zeroed, with `payload_len` bytes at
     * ->payload and `n_tensors` zeroed descriptors. NULL: out of memory. */
    struct tenrec_msg *(*msg_new)(struct tenrec_agent *self, uint64_t payload_len,
                                  uint32_t n_tensors);

    /* [AG-26] Allocates memory for its tensors. Sets data and device of each descriptor: the
     * caller's own buffer, the user's allocator or memory of the core. No bytes follow for a mapped
     * tensor. `target` is the device for the tensor (kind 0: unknown, host memory) and `source` the
     * device of the sender; memory of a device comes with a `stream` on which it may be written at
     * once. Deliver when the last copy to a device is queued, and the last copy to the host is
     * done. Called once per message with tensors, after type, id, the route of a request,
     * descriptors, and a payload of 64 KiB or less are filled in. ENOMEM, ETOOBIG: then drop the
     * message, skip the tensors' bytes, and answer a request with an EXCEPTION (exception_new).
     *
     * [AG-41] Nothing is written to that memory once the message is delivered, or released: its
     * owner may use it for something else (regions). */
    tenrec_status (*place)(struct tenrec_agent *self, tenrec_peer from, struct tenrec_msg *msg,
                           tenrec_error *err);

    /* [AG-27] Returns false while the queue of the pool is full: stop reading requests until resume
     * is called. */
    bool (*accepts)(struct tenrec_agent *self);

    /* [AG-28] The connection for requests to `peer` broke: calls that wait for its answer fail.
     * Call it before a new connection to the same peer accepts messages. */
    void (*peer_lost)(struct tenrec_agent *self, tenrec_peer peer, const tenrec_error *why);

    /* [AG-29] The connection for requests of `peer`, whose identity was proved, broke. No call
     * waits for it; the program is notified. If both connections break, report both, in any order.
     */
    void (*caller_lost)(struct tenrec_agent *self, tenrec_peer peer, const tenrec_error *why);

    /* Tensors in shared memory reach a process of this host as a mapping. These services are
     * optional; tensors that are not shared are carried as bytes.
     *
     * [AG-30] One sharing per connection that can carry descriptors, for both directions. NULL:
     * carry bytes. Close it after the last message of the connection. */
    struct tenrec_sharing *(*sharing_open)(struct tenrec_agent *self);
    void (*sharing_close)(struct tenrec_agent *self, struct tenrec_sharing *s);

    /* [AG-31] Makes the record to send in place of desc's bytes. Returns false if the bytes must
     * travel. The records must arrive in the order of these calls, each after its descriptors,
     * which the caller closes after sending. A record that could not be queued is taken back, the
     * last first; share_back closes its fds. Both may be called with locks of the plugin held. */
    bool (*share)(struct tenrec_agent *self, struct tenrec_sharing *s,
                  const struct tenrec_tensor_desc *desc, struct tenrec_share *ret);
    void (*share_back)(struct tenrec_agent *self, struct tenrec_sharing *s,
                       struct tenrec_share *share);

    /* [AG-32] A record arrived: call it for each, in order, before place. Takes the fds always.
     * Sets desc->mapping, which place or the release of the message takes; desc->bytes is set.
     * NULL: the message is discarded. EPROTOCOL: close the connection. Other errors: drop the
     * message, as if place failed. */
    tenrec_status (*shared)(struct tenrec_agent *self, struct tenrec_sharing *s,
                            struct tenrec_share *share, struct tenrec_tensor_desc *desc,
                            tenrec_error *err);

    /* Since ABI 1.1.
     *
     * [AG-34] Makes the EXCEPTION that takes the place of the answer to `msg`, a request that is
     * not delivered, or of `msg`, an answer that is not: with its id and route, and `why` in the
     * form of its payload (all of it for Tenrec's, the text for any other). Borrows both. The
     * caller sends it, or delivers it, as any answer. NULL: out of memory. */
    struct tenrec_msg *(*exception_new)(struct tenrec_agent *self, const struct tenrec_msg *msg,
                                        const tenrec_error *why);

    /* [AG-35] For a message that waits in the agent: calls fn(arg) at `due_ns` (CLOCK_MONOTONIC) or
     * later, on a core thread, one call at a time, in the order of due_ns and, where that is the
     * same, of these calls. Before shutdown of `self` begins at the latest, then early, on the
     * thread that shuts down. `sends`: fn sends the message, so a drain of the chain waits until fn
     * has returned. ENOMEM; ESHUTDOWN from then on. */
    tenrec_status (*hold)(struct tenrec_agent *self, uint64_t due_ns, bool sends,
                          void (*fn)(void *arg), void *arg);

    /* [AG-39] Accounts of callers that are no members. A backend charges a message of such a caller
     * when it is announced, with all memory that it will take, and lets the message carry the
     * charge: it ends with the memory, when the message is released. Any thread. */
    const struct tenrec_budget *budget;
};

static inline void tenrec_done_succeed(struct tenrec_done done)
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

/* Pushes a number, for debug_info. */
static inline void tenrec_sink_number(tenrec_sink_fn *sink, void *arg, const char *key, uint64_t n)
{
    char value[24];

    snprintf(value, sizeof value, "%llu", (unsigned long long)n);
    sink(arg, key, value);
}

#ifdef CLOCK_MONOTONIC /* of POSIX, which -std=c11 alone leaves out */
/* The time, as in deadline_ns and for hold: CLOCK_MONOTONIC in nanoseconds. */
static inline uint64_t tenrec_now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}
#endif

#ifdef __cplusplus
}
#endif

#endif
