/* SPDX-License-Identifier: Apache-2.0 */
/* tenrec/agent.h - the contract between the core and agents, which move messages.
 *
 * Agents form a chain. The core calls the outermost agent. `inner` points one step nearer to the
 * wire, `outer` one step nearer to the user.
 *
 *     core -> faulty -> tensorpipe -> wire        send goes inwards
 *     core <- faulty <- tensorpipe <- wire        deliver goes outwards
 *
 * [AG-1] The core skips an op that is NULL, or beyond ops->size, and continues with the next agent
 * of the chain. A wrapper therefore implements only the ops that it changes, and passes on an op
 * that did not exist when it was built.
 *
 * [AG-2] Threads: send, deliver, poll, lead, resume, disconnect, maps and debug_info may be called
 * from any thread, concurrently. address, devices, use_devices, start, member_joined, member_left,
 * drain, shutdown and destroy are called one at a time. During drain the group may still change
 * (member_joined, member_left, devices, use_devices). [AG-3] Hold no lock of the plugin while
 * calling inwards, outwards or the host.
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

/* [AG-4] Call fn exactly once per send: with NULL once the message is on its way, or with an error
 * if it cannot be sent. Any thread may call it, also inside send. `err` is valid only during the
 * call. If fn is NULL, the sender needs no notice. Never grows: it is passed by value. */
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

    /* [AG-5] 64 random bits of that life, published in its record in the store. A caller that
     * knows them is that member, or has read the store. Send them only to a peer that has proved
     * that it knows them. 0: the record has none. */
    uint64_t token;

    /* [AG-42] 1: the member is alone in its own group, as this worker is in its own
     * (tenrec/link.h). Each has the id 0 for itself and chooses an id for the other. The member
     * therefore proves that it is (0, incarnation, name); find it by these and its token. Only
     * agents of plugins with TENREC_PLUGIN_LINKS get such members, always by member_joined. */
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

/* Is true if `table` is long enough to have `member`, and `member` is set. */
#define TENREC_HAS(table, member)                                                                  \
    ((table)->size >= (size_t)((const char *)&(table)->member - (const char *)(table)) +           \
                          sizeof((table)->member) &&                                               \
     (table)->member)

/* [AG-33] If a plugin cannot work without a service, its init begins with this macro and returns
 * an error that it returns. The result is TENREC_OK if `table`, a struct tenrec_host or
 * tenrec_store_host, has `member`. Otherwise it is EABI, with both versions and the member's name
 * in `err`. The services of the first table need no check: those of struct tenrec_host up to
 * peer_lost, and all of struct tenrec_store_host. Include tenrec/plugin.h to use it. */
#define TENREC_REQUIRES(table, member, err)                                                        \
    (TENREC_HAS(table, member)                                                                     \
         ? TENREC_OK                                                                               \
         : tenrec_fail((err), TENREC_EABI,                                                         \
                       "this core (plugin ABI %d.%d) lacks the service '%s' that the plugin "      \
                       "(ABI %d.%d) requires: use a newer Tenrec, or an older plugin",             \
                       (int)(table)->abi_major, (int)(table)->abi_minor, #member,                  \
                       TENREC_ABI_MAJOR, TENREC_ABI_MINOR))

/* The first part of the services for plugins of each kind: the size of the whole struct, the ABI
 * of the core, and the log. `self` is the object that the plugin's init received. log_enabled
 * returns true if messages of that level are logged; log logs a message. Any thread may call both.
 */
#define TENREC_PLUGIN_HOST                                                                         \
    uint32_t size;                                                                                 \
    uint16_t abi_major, abi_minor;                                                                 \
    bool (*log_enabled)(const void *self, enum tenrec_log_level level);                            \
    void (*log)(const void *self, enum tenrec_log_level level, const char *fmt, ...)               \
        TENREC_PRINTF(3, 4);

/* The operations on devices of one kind. [AG-6] These functions belong to the process, not to an
 * agent. Tensors and futures outlive workers, so the core may call them after the agent is
 * destroyed, and keeps the plugin mapped once it has the table. Several threads may call them at
 * once. Only stream_wait waits for a device. Each function restores the thread's current device
 * (context). */
struct tenrec_device_ops {
    uint32_t size; /* sizeof(struct tenrec_device_ops) */
    int32_t kind;  /* enum tenrec_device_kind */

    /* Returns the streams of a pool in turn. They are never destroyed. */
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

    /* Queues a copy on `s`. Either side is memory of the host or of any device of this kind. The
     * function may wait for host memory that is not pinned. */
    tenrec_status (*copy)(const struct tenrec_stream *s, void *to, const void *from, uint64_t bytes,
                          tenrec_error *err);
};

struct tenrec_agent_ops {
    uint32_t size; /* sizeof(struct tenrec_agent_ops) */
    uint32_t reserved;
    const struct tenrec_extension *extensions; /* NULL: none */

    /* [AG-7] The address for peers, such as "uv://10.0.0.3:41234". Called once, between init and
     * start. The core publishes the address in the store. The agent owns it until destroy. In the
     * modes of security the core refuses a plugin without proofs, unless only processes of this
     * host can reach the address: "://" is followed by "@" (an abstract socket), "/" (a path) or a
     * loopback address. */
    const char *(*address)(struct tenrec_agent *self);

    /* [AG-8] Begin to serve. From now on deliver may be called. The core starts the agents from
     * the innermost outwards, when all `n` members have published their address. `member`
     * and its strings are borrowed until shutdown: find a member (tenrec_member_find) when it is
     * needed, as a large group has many that are never called. May block, at most for the
     * backend's own connect timeout. A wrapper may receive send and deliver before its own start,
     * because the agents inside it already serve. */
    tenrec_status (*start)(struct tenrec_agent *self, const struct tenrec_member *member,
                           uint32_t n, tenrec_error *err);

    /* [AG-9] A member joined or left a dynamic group. `member` is borrowed during the call; its
     * strings live until shutdown. */
    void (*member_joined)(struct tenrec_agent *self, const struct tenrec_member *member);
    void (*member_left)(struct tenrec_agent *self, tenrec_peer id);

    /* [AG-10] Send `msg` to `to`, or along msg->route if that is set. Always take the message, and
     * call `done` exactly once. Do not block on the network unless the message has
     * TENREC_MSG_MAY_WAIT. The innermost agent must have this op. If a wrapper replaces `msg` by a
     * message of its own, it keeps type, id, key_len, deadline_ns, flags and route.
     *
     * [AG-40] Release `msg` only when neither this process nor the receiver reads its payload and
     * tensors any more. Its owner may then change that memory, or withdraw it from its peers
     * (regions). Only memory that host->share has lent may be read later.
     *
     * [AG-37] If the address of `to` refuses the connection because no process listens there, call
     * `done` with ECONNECT and os_errno ECONNREFUSED. The member has then ended, and a graceful
     * shutdown no longer waits for it.
     *
     * [AG-11] Each tensor's `target` is its device at the receiver. A tensor in device memory has
     * a `stream` on which it is ready. You may queue work and events on that stream until the
     * message is released. Release the message only when the device no longer reads the memory.
     * Fail with EUNSUPPORTED for a tensor that the agent cannot send. */
    void (*send)(struct tenrec_agent *self, tenrec_peer to, struct tenrec_msg *msg,
                 struct tenrec_done done);

    /* [AG-12] Handle a message on its way to the user. Only wrappers have this op. Takes the
     * message. */
    void (*deliver)(struct tenrec_agent *self, tenrec_peer from, struct tenrec_msg *msg);

    /* [AG-13] A thread that waits for an answer from `peer` calls this op. Read and deliver
     * messages from that peer until *wait->done is set or the deadline has passed, then return OK.
     * If there is no connection to read from, return EUNSUPPORTED at once; the core then waits
     * without the agent. */
    tenrec_status (*poll)(struct tenrec_agent *self, tenrec_peer peer,
                          const struct tenrec_wait *wait);

    /* [AG-14] Continue to read requests: host->accepts returns true again. */
    void (*resume)(struct tenrec_agent *self);

    /* [AG-15] Drop the connection to `peer`. Its pending calls fail with EPEER_LOST, and a later
     * send connects again. Return EUNSUPPORTED if the agent has no connections. */
    tenrec_status (*disconnect)(struct tenrec_agent *self, tenrec_peer peer, tenrec_error *err);

    /* [AG-16] Wait until `done` was called for every accepted send. Return ETIMEDOUT after `ms`
     * milliseconds. The core calls drain, disconnect and resume for every agent of the chain,
     * outermost first. */
    tenrec_status (*drain)(struct tenrec_agent *self, uint32_t ms, tenrec_error *err);

    /* [AG-17] Stop. Call `done` of pending sends with ECANCELED and join all threads. After the
     * return no code of the plugin runs until destroy, except a concurrent send of another thread,
     * which also fails with ECANCELED. The core shuts agents down from the outermost inwards. It
     * does not call this op if start failed or never ran. */
    void (*shutdown)(struct tenrec_agent *self);

    /* [AG-18] Free self->impl. This op is always called, even if start failed or never ran. Do not
     * touch self->inner, since the core owns the chain. */
    void (*destroy)(struct tenrec_agent *self);

    /* [AG-19] Push counters and states for people to read. The core calls this op for every agent
     * of the chain and puts "<backend>." before each key. */
    void (*debug_info)(struct tenrec_agent *self, tenrec_sink_fn *sink, void *arg);

    /* [AG-20] Return the operations of the devices from and to which this agent sends tensors, and
     * the number of these devices in *ret_n (indices 0 to n - 1). Return EUNSUPPORTED with the
     * reason if there are none. Do not create a context. Called between init and start, or when
     * the maps of a member first name this worker. */
    tenrec_status (*devices)(struct tenrec_agent *self, const struct tenrec_device_ops **ret,
                             uint32_t *ret_n, tenrec_error *err);

    /* [AG-21] Prepare the worker's devices, given by index, because a peer may send to them before
     * the program uses them. Called before start, and again with the whole list when it grows
     * (dynamic groups). If the list is empty, tensors of the host will go to devices of peers. */
    tenrec_status (*use_devices)(struct tenrec_agent *self, const struct tenrec_device *device,
                                 uint32_t n, tenrec_error *err);

    /* [AG-22] Returns true if a message sent now to `peer`, or along `route` if its generation is
     * not 0, would probably pass memory of host->share as a mapping. The answer may be a cheap
     * guess. If it is true, a sender with private memory first copies it into shared memory. */
    bool (*maps)(struct tenrec_agent *self, tenrec_peer peer, struct tenrec_route route);

    /* [AG-23] A thread that runs functions calls this op to lead. Until *wait->done is set or the
     * deadline has passed, it reads and delivers messages of all peers, and the agent's own thread
     * pauses. Then return OK. If another thread leads already, or the agent does not serve, return
     * EUNSUPPORTED at once. wait->wake_fd may be -1. Shutdown also ends the op. */
    tenrec_status (*lead)(struct tenrec_agent *self, const struct tenrec_wait *wait);
};

/* An optional extension of struct tenrec_agent_ops, for agents whose options change while they run.
 * Grows at its end: the extension has its size. */
struct tenrec_reconfigure {
    struct tenrec_extension extension; /* TENREC_EXTENSION_RECONFIGURE */

    /* Applies other options. The new and the former options are borrowed until destroy. Called
     * after start and before shutdown, one call at a time, and never during member_joined and
     * member_left. Any thread may call it, even a thread of the agent, so it must not block.
     *
     * errors   ECONFIG, ENOMEM; nothing has changed then */
    tenrec_status (*change)(struct tenrec_agent *self, const void *options, tenrec_error *err);
};

#define TENREC_EXTENSION_RECONFIGURE 4u

/* An optional extension of struct tenrec_agent_ops, for agents that know how far a message has
 * arrived. Grows at its end: the extension has its size. */
struct tenrec_traffic {
    struct tenrec_extension extension; /* TENREC_EXTENSION_TRAFFIC */

    /* [AG-38] For each id below `n`, add the number of bytes that have arrived so far from peer
     * `id` to received[id]. Count all connections with the peer, also bytes of incomplete
     * messages. You may omit a connection that has ended. With these counts a member of a dynamic
     * group is not declared dead while a large tensor delays its small messages. Any thread may
     * call this op, even while the agent starts or stops, so it must not block. */
    void (*received)(struct tenrec_agent *self, uint64_t *received, uint32_t n);
};

#define TENREC_EXTENSION_TRAFFIC 5u

/* One link of the chain. The core allocates it; init_agent sets ops and impl. The other members
 * are read-only for plugins. Grows at its end, since only the core allocates it. */
struct tenrec_agent {
    const struct tenrec_agent_ops *ops;
    void *impl;
    const struct tenrec_host *host;
    const char *log_part;       /* of its log lines */
    struct tenrec_agent *inner; /* NULL at the wire */
    struct tenrec_agent *outer; /* NULL at the user */
};

/* The bytes that this process holds for callers that are no members, and their work. A backend has
 * an account for each source of such callers, such as an address. A limit for each connection
 * would limit nothing, because these callers can open connections freely. All accounts of the
 * process share one sum. An account is counted: the messages that are charged to it keep it. Never
 * grows: the core allocates it as part of a larger struct. */
struct tenrec_account {
    uint32_t own[4]; /* the backend's, for what it counts by source; zeros at first */
};

/* The limits of an account. Never grows: it is passed by address. */
struct tenrec_account_limits {
    uint64_t all; /* bytes of all accounts */
    uint64_t own; /* bytes of the account; UINT64_MAX: no limit */
};

struct tenrec_budget {
    uint32_t size; /* sizeof(struct tenrec_budget); grows at its end */
    uint32_t reserved;
    struct tenrec_account *(*open)(void); /* of no source. NULL: out of memory */
    void (*close)(struct tenrec_account *a);
    /* Always charges `n` bytes. Returns true while both limits hold. An account that held nothing
     * may exceed its own limit with one larger message, but never the limit of all accounts.
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
    /* `msg`, from msg_new, takes over `n` charged bytes until its release. The core also charges
     * the objects that it makes from the message, such as the values of its payload, and refuses
     * them beyond the limits. Call it once per message, before delivery. */
    void (*carry)(struct tenrec_msg *msg, struct tenrec_account *a, uint64_t n,
                  const struct tenrec_account_limits *limits);

    /* Returns the account of the source of a connection, to be closed by close. A source is an
     * IPv4 address, a 64-bit IPv6 network or, for a Unix socket, a process of this host. `owner`,
     * any address in the backend, separates the accounts of backends. NULL: out of memory. */
    struct tenrec_account *(*source)(const void *owner, const struct sockaddr *from,
                                     uint32_t process);
    /* Returns false if connections of the source have begun `at_once` proofs of membership, and 32
     * more in each second since then, and none was admitted. `now_ns` does not decrease. `a` is
     * from source, or NULL for a source without limit. */
    bool (*may_prove)(struct tenrec_account *a, uint32_t at_once, uint64_t now_ns);
    /* A connection was admitted. From now on the proofs of its source have no limit while the
     * account is in use. `a` may be NULL. */
    void (*admit)(struct tenrec_account *a);
};

/* Services of the core for plugins. Grows at its end only. */
struct tenrec_host {
    TENREC_PLUGIN_HOST
    const struct tenrec_extension *extensions; /* NULL: none */

    /* Pass a message from `self` inwards or outwards. Both take the message. [AG-24] Create a
     * delivered message with msg_new and, if it has tensors, with place. Its key_len and
     * deadline_ns are those of the sent message, or 0 if the backend does not transmit them. */
    void (*send_inner)(struct tenrec_agent *self, tenrec_peer to, struct tenrec_msg *msg,
                       struct tenrec_done done);
    void (*deliver_outer)(struct tenrec_agent *self, tenrec_peer from, struct tenrec_msg *msg);

    /* [AG-25] Calls fn(arg) after `ms` milliseconds on a core thread. If shutdown of `self` begins
     * earlier, it calls fn before that, on the thread that shuts down. Fails with ENOMEM, and with
     * ESHUTDOWN once shutdown has begun. */
    tenrec_status (*after)(struct tenrec_agent *self, uint32_t ms, void (*fn)(void *arg),
                           void *arg);

    /* A message to fill from the wire: zeroed, with `payload_len` bytes at
     * ->payload and `n_tensors` zeroed descriptors. NULL: out of memory. */
    struct tenrec_msg *(*msg_new)(struct tenrec_agent *self, uint64_t payload_len,
                                  uint32_t n_tensors);

    /* [AG-26] Allocates memory for the tensors of a message. Call it once per message with
     * tensors, after you have filled in type, id, the route of a request, the descriptors, and a
     * payload of 64 KiB or less. It sets data and device of each descriptor: the caller's own
     * buffer, memory of the user's allocator, or memory of the core. No bytes follow for a mapped
     * tensor. `target` is the device for the tensor (kind 0: unknown, host memory), and `source`
     * is the device of the sender. Device memory comes with a `stream` on which you may write it
     * at once. Deliver the message when the last copy to a device is queued and the last copy to
     * the host is done. After ENOMEM or ETOOBIG, drop the message, skip the tensors' bytes, and
     * answer a request with an EXCEPTION (exception_new).
     *
     * [AG-41] Do not write to that memory after the message is delivered or released, because its
     * owner may use it for something else (regions). */
    tenrec_status (*place)(struct tenrec_agent *self, tenrec_peer from, struct tenrec_msg *msg,
                           tenrec_error *err);

    /* [AG-27] Returns false while the queue of the pool is full. Then stop reading requests until
     * resume is called. */
    bool (*accepts)(struct tenrec_agent *self);

    /* [AG-28] Report that the connection for requests to `peer` broke. Calls that wait for its
     * answers fail. Call it before a new connection to the same peer accepts messages. */
    void (*peer_lost)(struct tenrec_agent *self, tenrec_peer peer, const tenrec_error *why);

    /* [AG-29] Report that the connection for requests from `peer`, whose identity was proved,
     * broke. No call waits for it, but the program is notified. If both connections break, report
     * both, in any order.
     */
    void (*caller_lost)(struct tenrec_agent *self, tenrec_peer peer, const tenrec_error *why);

    /* Tensors in shared memory reach a process of this host as a mapping. These services are
     * optional. Tensors that are not shared are sent as bytes.
     *
     * [AG-30] Open one sharing for each connection that can pass descriptors; it serves both
     * directions. NULL: send bytes. Close it after the last message of the connection. */
    struct tenrec_sharing *(*sharing_open)(struct tenrec_agent *self);
    void (*sharing_close)(struct tenrec_agent *self, struct tenrec_sharing *s);

    /* [AG-31] Makes the record to send instead of desc's bytes. Returns false if the bytes must be
     * sent. The records must arrive in the order of these calls, each after its descriptors, which
     * the caller closes after sending. Return records that could not be queued by share_back, the
     * last record first; it closes their fds. You may call both with locks of the plugin held. */
    bool (*share)(struct tenrec_agent *self, struct tenrec_sharing *s,
                  const struct tenrec_tensor_desc *desc, struct tenrec_share *ret);
    void (*share_back)(struct tenrec_agent *self, struct tenrec_sharing *s,
                       struct tenrec_share *share);

    /* [AG-32] Call it for each record that arrived, in order, before place. It always takes the
     * fds. It sets desc->mapping, which place or the release of the message takes; desc->bytes
     * must be set. A NULL `desc` means that the message is discarded. After EPROTOCOL, close the
     * connection. After other errors, drop the message, as if place had failed. */
    tenrec_status (*shared)(struct tenrec_agent *self, struct tenrec_sharing *s,
                            struct tenrec_share *share, struct tenrec_tensor_desc *desc,
                            tenrec_error *err);

    /* Since ABI 1.1.
     *
     * [AG-34] Makes an EXCEPTION with the id and route of `msg`. It replaces the answer to `msg`,
     * a request that is not delivered, or `msg` itself, an answer that is not delivered. It
     * contains `why` in the form of msg's payload: all of it for Tenrec's payloads, only the text
     * for others. Borrows both. The caller sends or delivers it like any answer. NULL: out of
     * memory. */
    struct tenrec_msg *(*exception_new)(struct tenrec_agent *self, const struct tenrec_msg *msg,
                                        const tenrec_error *why);

    /* [AG-35] Use it for a message that waits in the agent. It calls fn(arg) at `due_ns`
     * (CLOCK_MONOTONIC) or later, on a core thread, one call at a time. The order is that of
     * due_ns or, if these are equal, that of the calls of hold. If shutdown of `self` begins
     * earlier, it calls fn before that, on the thread that shuts down. If `sends` is true, fn
     * sends the message, so a drain of the chain waits until fn has returned. Fails with ENOMEM,
     * and with ESHUTDOWN once shutdown has begun. */
    tenrec_status (*hold)(struct tenrec_agent *self, uint64_t due_ns, bool sends,
                          void (*fn)(void *arg), void *arg);

    /* [AG-39] The accounts of callers that are no members. When such a caller announces a message,
     * a backend charges all memory that the message will take, and lets the message carry the
     * charge. The charge ends with the memory, when the message is released. Any thread may call
     * these functions. */
    const struct tenrec_budget *budget;

    /* [AG-43] Whether the end of the connections to or from that peer has to be noticed: then an
     * agent does not close idle ones. NULL: it has. Any thread. */
    bool (*needs)(struct tenrec_agent *self, tenrec_peer peer);
};

/* The member with that id of the `n` that `start` was given, or NULL. Most groups list member i at
 * i. */
static inline const struct tenrec_member *tenrec_member_find(const struct tenrec_member *member,
                                                             uint32_t n, tenrec_peer id)
{
    const char *const all = (const char *)member;
    const struct tenrec_member *one;

    if (id < 0 || n == 0)
        return NULL;
    if ((uint32_t)id < n) {
        one = (const struct tenrec_member *)(const void *)(all + (size_t)id * member->size);
        if (one->id == id)
            return one;
    }
    for (uint32_t i = 0; i < n; i++) {
        one = (const struct tenrec_member *)(const void *)(all + (size_t)i * member->size);
        if (one->id == id)
            return one;
    }
    return NULL;
}

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

/* Pushes a number for debug_info. */
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
