/* SPDX-License-Identifier: Apache-2.0 */
/* tenrec/rpc.h - workers that call functions on each other.
 *
 * The life of a worker:
 *
 *     tenrec_worker_new(config)             nothing is started yet
 *     tenrec_worker_register_function(...)  functions for callers
 *     tenrec_init_rpc(w)                    joins the group; starts to serve
 *     tenrec_rpc_sync / _async ...          calls
 *     tenrec_shutdown(w, ...)               together with the others, or at once
 *     tenrec_worker_drop(w)
 *
 * A worker is a handle, not a global: one process can have several. A worker has one loop thread,
 * its backend has another, and pool threads start and end with the work. Tenrec starts no thread
 * before tenrec_init_rpc and registers nothing with atexit. It has one signal handler, for
 * SIGRTMAX - 3, which is installed only while a dump or the warning about a stuck function reads
 * the stacks of threads, and only if the program does not handle that signal. observe.stacks in
 * the configuration disables it. After fork() the child must not use a worker of its parent, not
 * even to drop it, but may make its own.
 */
#ifndef TENREC_RPC_H
#define TENREC_RPC_H

#include <tenrec/config.h>
#include <tenrec/device.h>
#include <tenrec/future.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct tenrec_worker; /* opaque */
struct tenrec_call;   /* opaque: one request that a function answers */

/* Name and id of a worker. The name is borrowed until shutdown.
 * Never grows: it is returned by value and in arrays. Other properties of a worker have functions
 * of their own. */
struct tenrec_worker_info {
    const char *name;
    tenrec_peer id;
    uint32_t reserved;
};

/* ---- life ---------------------------------------------------------------- */

/* Makes a worker. It starts and opens nothing.
 *
 * config   borrowed during the call; NULL loads $TENREC_CONFIG or the built-in
 *          default
 * ret      owns: drop it
 * errors   ECONFIG, EPLUGIN, ENOMEM
 */
tenrec_status tenrec_worker_new(const struct tenrec_config *config, struct tenrec_worker **ret,
                                tenrec_error *err);

/* Joins the group and starts to serve. Returns when every member of a static group has published
 * its address, at most after the configured init_timeout.
 *
 * errors   ECONFIG, EPLUGIN, EABI, EGROUP (names the ranks that are missing or disagree),
 *          ECONNECT, ETIMEDOUT, EBUSY (called twice, or a function of the previous session still
 *          runs), EOS, ENOMEM
 * threads  one at a time
 * source   torch.distributed.rpc.init_rpc, without its process-wide state
 */
tenrec_status tenrec_init_rpc(struct tenrec_worker *w, tenrec_error *err);

/* Attaches to a running group from outside, instead of tenrec_init_rpc: it finds the members in
 * the store and starts without joining. Calls are sent like those of a member, but the callee sees
 * TENREC_ANONYMOUS and cannot call back. The group does not wait for this worker, and its
 * tenrec_shutdown waits only for its own calls. Operations of members (barriers, gathers, remote
 * references) are refused.
 *
 * w        made with the backend of the group; its worker.group names the group in the store
 * store    borrowed: URL of the group's store (tcp://host:port, file://path);
 *          NULL: as the config's init_method says
 * ms       limit of the whole, including the wait for the members' start
 * errors   EINVAL, ENOTFOUND or ECONNECT (no store there), EGROUP (no such
 *          group in it), ETIMEDOUT (names the missing ranks),
 *          EUNSUPPORTED (a backend for one process only), EBUSY, ENOMEM
 * threads  one at a time
 */
tenrec_status tenrec_worker_attach(struct tenrec_worker *w, const char *store, int64_t ms,
                                   tenrec_error *err);

enum tenrec_shutdown_mode {
    TENREC_GRACEFUL,  /* outstanding calls of all members end first */
    TENREC_IMMEDIATE, /* now; pending calls fail with ECANCELED */
};

/* This holds in both modes, and for tenrec_worker_drop. Once shutdown begins, no function starts.
 * Calls that wait for a thread are answered with ESHUTDOWN, or fail with EPEER_LOST if the
 * connection closes first. Shutdown waits for running functions until the limit. The text of
 * ETIMEDOUT then names the functions that still run. They continue, and their resources (the `arg`
 * of tenrec_worker_register_function, their call) must live until they have returned. */

/* Leaves the group. Graceful: waits until no worker of the group has an outstanding call,
 * including running one-way calls, then all leave together; the worker is down when this
 * returns, also after an error. A dead member of a static group, connected or not, ends the wait
 * at once.
 *
 * ms       limit of the whole; TENREC_TIMEOUT_DEFAULT: the rpc_timeout, or 60 s if that is none;
 *          TENREC_TIMEOUT_NONE: no limit
 * errors   ETIMEDOUT (names the missing workers, or the function that still runs), EPEER_LOST
 *          (names the dead workers), EINVAL,
 *          EWOULDBLOCK, ESHUTDOWN (was not running), EBUSY (another thread shuts down)
 * threads  one at a time; not from a handler or a callback
 * source   torch.distributed.rpc.shutdown, with one deadline for all steps
 */
tenrec_status tenrec_shutdown(struct tenrec_worker *w, enum tenrec_shutdown_mode mode, int64_t ms,
                              tenrec_error *err);

/* Stops the worker (by an immediate shutdown if it still runs) and frees it. NULL is allowed.
 * Futures may outlive it. Not from a handler or a callback.
 *
 * It waits at most 10 s for running functions. If a function still runs then, its name is logged,
 * and the worker is never freed. The resources of the function must live until it has returned. To
 * get a status instead of a log line, call tenrec_shutdown first. */
void tenrec_worker_drop(struct tenrec_worker *w);

/* Returns true between init and shutdown. */
bool tenrec_worker_running(const struct tenrec_worker *w);

/* ---- members ------------------------------------------------------------- */

/* Returns true if `backend` (NULL: the default config's) can be loaded here.
 *
 * source   torch.distributed.rpc.is_available
 */
bool tenrec_is_available(const char *backend);

/* The version of the loaded library, as "1.2.3" and as one number: major * 10000 + minor * 100 +
 * patch. TENREC_VERSION (tenrec/version.h) is the version with which the program was compiled. */
const char *tenrec_version_text(void);
uint32_t tenrec_version_number(void);

/* Finds a worker by name (NULL: this worker) or by id.
 *
 * errors   EPEER_UNKNOWN (with the nearest name), ESHUTDOWN (not running)
 * source   torch.distributed.rpc.get_worker_info
 */
tenrec_status tenrec_get_worker_info(const struct tenrec_worker *w, const char *name,
                                     struct tenrec_worker_info *ret, tenrec_error *err);
tenrec_status tenrec_worker_get_info_by_id(const struct tenrec_worker *w, tenrec_peer id,
                                           struct tenrec_worker_info *ret, tenrec_error *err);

/* All workers, ordered by id: `ret` receives at most `room`, *ret_n their number. */
tenrec_status tenrec_worker_get_infos(const struct tenrec_worker *w, struct tenrec_worker_info *ret,
                                      size_t room, size_t *ret_n, tenrec_error *err);

/* Returns the id of this worker, which is its rank in a static group; TENREC_ANONYMOUS if it is
 * not running, or is attached. */
static inline tenrec_peer tenrec_worker_rank(const struct tenrec_worker *w)
{
    struct tenrec_worker_info me;

    return tenrec_get_worker_info(w, NULL, &me, NULL) == TENREC_OK ? me.id : TENREC_ANONYMOUS;
}

/* Returns the number of workers, including this worker; 0 if it is not running. */
static inline size_t tenrec_worker_size(const struct tenrec_worker *w)
{
    size_t n;

    return tenrec_worker_get_infos(w, NULL, 0, &n, NULL) == TENREC_OK ? n : 0;
}

/* The default limit of a call in milliseconds (TENREC_TIMEOUT_NONE: none).
 * A change applies to later calls.
 *
 * errors   EINVAL (negative or 0)
 */
int64_t tenrec_worker_get_rpc_timeout(const struct tenrec_worker *w);
tenrec_status tenrec_worker_set_rpc_timeout(struct tenrec_worker *w, int64_t ms, tenrec_error *err);

/* Sets a callback for a broken connection to or from a worker. It runs once if both break. Pending
 * calls to that worker fail with EPEER_LOST, and a later call connects again. NULL removes the
 * callback. The callback runs on a loop thread and must not block. A former callback may still run
 * once after another has been set. */
typedef void tenrec_peer_lost_fn(struct tenrec_worker *w, tenrec_peer id, const tenrec_error *why,
                                 void *arg);
void tenrec_worker_set_peer_lost_callback(struct tenrec_worker *w, tenrec_peer_lost_fn *fn,
                                          void *arg);

/* ---- functions for callers ----------------------------------------------- */

enum tenrec_function_flags {
    TENREC_POOL = 0,         /* runs on the pool, may block */
    TENREC_INLINE = 1 << 0,  /* runs on the delivering thread, may not block */
    TENREC_LATER = 1 << 1,   /* returning OK does not answer: the answer is sent by
                                tenrec_call_finish, from any thread. The call lives until then */
    TENREC_MAILBOX = 1 << 2, /* no function, fn is NULL: the call waits for
                                tenrec_worker_receive */
};

/* Answers one call. It returns OK after tenrec_call_return (without it the answer is nil), or an
 * error. The caller's call then ends with this status, the text and errno of *err, the name of
 * this worker and TENREC_ERROR_CALLEE in `flags`. Use EREMOTE for a failure that no other status
 * describes. */
typedef tenrec_status tenrec_function_fn(struct tenrec_call *call, void *arg, tenrec_error *err);

/* Registers `fn` under `name`; before tenrec_init_rpc or later.
 *
 * name     1..255 bytes; copied. Names that begin with "tenrec." are reserved
 * fn       NULL with TENREC_MAILBOX
 * flags    enum tenrec_function_flags
 * errors   EINVAL, EEXIST, ENOMEM
 */
tenrec_status tenrec_worker_register_function(struct tenrec_worker *w, const char *name,
                                              tenrec_function_fn *fn, void *arg, uint32_t flags,
                                              tenrec_error *err);

/* Waits for the next call of a mailbox, in the order of arrival. tenrec_call_finish sends the
 * answer. A collective sends its parts as calls, and receives the parts of the others when it
 * needs them:
 *
 *     tenrec_worker_register_function(w, "part", NULL, NULL, TENREC_MAILBOX, err);
 *     ...
 *     tenrec_worker_receive(w, "part", 5000, &call, err);
 *     tenrec_call_get_args(call, err, "Tf", &part);
 *     ...
 *     tenrec_call_finish(call, NULL);
 *
 * A call waits at most until its deadline. A mailbox holds as many calls and bytes as
 * worker.max_queued_calls and max_served_bytes permit, and refuses further calls with EAGAIN. A
 * shutdown refuses all calls with ESHUTDOWN.
 *
 * ms       TENREC_TIMEOUT_DEFAULT: the rpc_timeout
 * ret      owns: tenrec_call_finish it
 * errors   ETIMEDOUT, ENOTFOUND (no such mailbox), ESHUTDOWN, EWOULDBLOCK, EINVAL (negative ms)
 * threads  any, several at once; not an inline handler or a callback
 */
tenrec_status tenrec_worker_receive(struct tenrec_worker *w, const char *name, int64_t ms,
                                    struct tenrec_call **ret, tenrec_error *err);

/* The arguments of the call; borrowed until the call is answered. */
const struct tenrec_value *tenrec_call_args(const struct tenrec_call *c, size_t *ret_n);

/* Reads and checks the arguments by the type text of tenrec_value_unpack:
 *
 *     int64_t a; struct tenrec_tensor *t;
 *     tenrec_call_get_args(call, err, "it", &a, &t);
 *
 * ret      borrowed until the call is answered
 * errors   EINVAL: "argument 2 is text, expected an integer", "takes 2 arguments, got 1"
 */
tenrec_status tenrec_call_get_args(const struct tenrec_call *c, tenrec_error *err,
                                   const char *types, ...);
struct tenrec_worker *tenrec_call_worker(const struct tenrec_call *c);
const char *tenrec_call_function(const struct tenrec_call *c);
/* The caller; id TENREC_ANONYMOUS and name "" if it is not a member. */
struct tenrec_worker_info tenrec_call_from(const struct tenrec_call *c);

/* How a caller has proved its identity. The numbers never change. A program treats an unknown
 * number as TENREC_PROVED_RECORD if the caller is a member, and otherwise as
 * TENREC_PROVED_NOTHING. */
enum tenrec_caller_proof {
    TENREC_PROVED_NOTHING = 0, /* a stranger; in mode none also an attached tool */
    TENREC_PROVED_RECORD = 1,  /* a member, by what its record in the store says: the token, or the
                                  incarnation alone if it has none */
    TENREC_PROVED_SECRET = 2,  /* holds the group secret: a member, or an attached tool */
};

/* The proof behind tenrec_call_from. Over a backend that proves nothing, as on loopback, a member
 * has TENREC_PROVED_RECORD in every mode. */
enum tenrec_caller_proof tenrec_call_proof(const struct tenrec_call *c);
/* Milliseconds until the caller's deadline; TENREC_TIMEOUT_NONE if unknown. */
int64_t tenrec_call_time_left(const struct tenrec_call *c);
/* Returns true once the caller has canceled the call, or its connection is lost while it waits:
 * the answer will not be read. A pool function is not started if this is true before a thread is
 * free, unless the call is one-way. */
bool tenrec_call_canceled(const struct tenrec_call *c);

/* Returns this call's own stream, on which the arguments at `device` are ready and the results
 * must be ready. It is current on the thread that runs the function. Other threads that continue
 * the call get it here.
 *
 * source   the streams that torch.distributed.rpc makes current
 */
uint64_t tenrec_call_stream(struct tenrec_call *c, struct tenrec_device device);

/* Sets the answer; `value` is encoded at once and need not outlive this call. Tensors on devices
 * are ready when the current streams of the calling thread are done.
 *
 * errors   EINVAL, EUNSUPPORTED (an object that does not travel, a reference for a caller that is
 *          not a member), ENOMEM and those of the driver
 */
tenrec_status tenrec_call_return(struct tenrec_call *c, const struct tenrec_value *value,
                                 tenrec_error *err);

/* Answers a TENREC_LATER call and frees it. The answer is the error `why`, or the value of
 * tenrec_call_return if `why` is NULL. Call it exactly once.
 *
 * threads  any
 * source   torch.distributed.rpc.functions.async_execution
 */
void tenrec_call_finish(struct tenrec_call *c, const tenrec_error *why);

/* ---- devices -------------------------------------------------------------- */

/* Maps devices for tensors sent to worker `to`, in addition to worker.device_maps of the
 * configuration; answers use the inverse map. Call it before tenrec_init_rpc, at which the group
 * agrees on all maps.
 *
 * errors   EINVAL (a device has another target already, or does not exist), EBUSY (the
 *          worker runs), ENOMEM
 * source   torch's TensorPipeRpcBackendOptions.set_device_map
 */
tenrec_status tenrec_worker_set_device_map(struct tenrec_worker *w, const char *to,
                                           const struct tenrec_device_pair *pair, size_t n,
                                           tenrec_error *err);

/* Restricts the devices that this worker sends from and receives to; replaces worker.devices of
 * the configuration. None: the devices of the device maps.
 *
 * errors   EINVAL, EBUSY (the worker runs), ENOMEM
 * source   torch's TensorPipeRpcBackendOptions.set_devices
 */
tenrec_status tenrec_worker_set_devices(struct tenrec_worker *w, const struct tenrec_device *device,
                                        size_t n, tenrec_error *err);

/* The devices that the worker uses, as agreed with the group: `ret` receives at most `room`,
 * *ret_n their number.
 *
 * errors   ESHUTDOWN (not running)
 */
tenrec_status tenrec_worker_get_devices(const struct tenrec_worker *w, struct tenrec_device *ret,
                                        size_t room, size_t *ret_n, tenrec_error *err);

/* ---- calls ----------------------------------------------------------------*/

enum tenrec_call_flags {
    TENREC_ONE_WAY = 1 << 0,  /* has no answer; done when handed to the wire. A
                                 graceful shutdown waits until the function ends */
    TENREC_WAIT_NEXT = 1 << 1 /* this thread waits for the future next, and reads the answer
                                 meanwhile as in a synchronous call. If it does not, the answer is
                                 read up to 0.12 s late */
};

/* NULL options, or a zeroed struct with size set, mean the defaults. */
struct tenrec_call_options {
    uint32_t size;              /* sizeof(struct tenrec_call_options) */
    uint32_t flags;             /* enum tenrec_call_flags */
    int64_t timeout_ms;         /* TENREC_TIMEOUT_DEFAULT, _NONE or > 0 */
    struct tenrec_tensor *into; /* receive the result's first tensor straight
                                   into this one (shared): same dtype, shape
                                   and contiguous, else the call fails. Unused if the result has
                                   no tensor */
    const char *traceparent;    /* the trace that the call continues (tenrec/trace.h); NULL: the
                                   thread's */
    uint64_t reserved[3];       /* zero */
};

/* Calls `function` on `to` and waits for its result.
 *
 * to       name of a worker, oneself included
 * args     n values; encoded before anything is sent, tensors are shared
 * ret      owns: tenrec_value_drop it; NULL discards the result
 * errors   the error of the function (TENREC_ERROR_CALLEE in err->flags; err names the worker),
 *          else ETIMEDOUT, ENOFUNCTION,
 *          EPEER_UNKNOWN, EPEER_LOST, ECONNECT, ECANCELED, EINVAL, EAGAIN,
 *          EWOULDBLOCK (inline handler), EDEVICE (a tensor is on a device that
 *          no map names), EUNSUPPORTED (an object that does not travel, a tensor that the backend
 *          cannot carry), EINJECTED, ESHUTDOWN, ENOMEM
 * threads  any; not an inline handler or a callback
 * source   torch.distributed.rpc.rpc_sync; a timeout never cancels a running function. A
 *          function that still waits for a thread at its deadline is not started (torch starts
 *          it)
 */
tenrec_status tenrec_rpc_sync(struct tenrec_worker *w, const char *to, const char *function,
                              const struct tenrec_value *args, size_t n,
                              const struct tenrec_call_options *options, struct tenrec_value **ret,
                              tenrec_error *err);

/* The same without waiting. Invalid arguments fail here; later failures fail the future.
 *
 * ret      shares: drop it
 * threads  any, also inline handlers and callbacks
 * source   torch.distributed.rpc.rpc_async
 */
tenrec_status tenrec_rpc_async(struct tenrec_worker *w, const char *to, const char *function,
                               const struct tenrec_value *args, size_t n,
                               const struct tenrec_call_options *options,
                               struct tenrec_future **ret, tenrec_error *err);

/* ---- collectives --------------------------------------------------------- */

/* Waits until every worker of `names` (NULL: all) is in the same barrier.
 * Several threads may use the same set: calls pair up in order.
 *
 * ms       limit of the whole; TENREC_TIMEOUT_DEFAULT: the rpc_timeout
 * errors   ETIMEDOUT (names the missing workers), EPEER_LOST (names the lost
 *          member: at once if its connection broke, also before the barrier, else within two
 *          seconds), EINVAL (this worker is not in the set, a worker is named twice, negative ms),
 *          EPEER_UNKNOWN, EGROUP (of all: the members of the dynamic group have changed, and
 *          another worker knows others), ECANCELED (by a shutdown), EAGAIN (too many are under
 *          way), EWOULDBLOCK, ESHUTDOWN, ENOMEM
 * threads  any; not an inline handler or a callback
 */
tenrec_status tenrec_worker_barrier(struct tenrec_worker *w, const char *const *names, size_t n,
                                    int64_t ms, tenrec_error *err);

/* Each worker contributes a value and receives a map from worker name to value. Remote
 * references, objects and tensors on devices are not gathered.
 *
 * value    NULL contributes nil
 * ms, threads  as tenrec_worker_barrier
 * ret      owns: tenrec_value_drop it; NULL discards the map
 * errors   as tenrec_worker_barrier, EUNSUPPORTED
 * source   torch.distributed.rpc.api._all_gather
 */
tenrec_status tenrec_worker_all_gather(struct tenrec_worker *w, const struct tenrec_value *value,
                                       const char *const *names, size_t n, int64_t ms,
                                       struct tenrec_value **ret, tenrec_error *err);

/* ---- for programs with an event loop of their own ------------------------ */

/* After the first call, callbacks of futures (add_callback, then) of this worker no longer run on
 * Tenrec's threads. Instead the fd becomes readable, and tenrec_worker_dispatch runs them. The fd
 * belongs to the worker.
 *
 * errors   EOS
 */
tenrec_status tenrec_worker_get_fd(struct tenrec_worker *w, int *ret_fd, tenrec_error *err);

/* Runs the ready callbacks on the calling thread; returns their number. */
size_t tenrec_worker_dispatch(struct tenrec_worker *w);

/* ---- memory --------------------------------------------------------------- */

enum tenrec_allocator_flags {
    TENREC_ALLOCATOR_DEVICES = 1 << 0, /* also allocates memory of devices: of desc->device,
                                          writable on desc->stream at once.
                                          NULL: the backend's instead */
};

/* Memory for received tensors. `alloc` returns desc->bytes of it, in the host unless the flag is
 * set; `free_fn` is called after the last use. */
struct tenrec_allocator {
    uint32_t size;  /* sizeof(struct tenrec_allocator) */
    uint32_t flags; /* enum tenrec_allocator_flags */
    void *(*alloc)(void *arg, const struct tenrec_tensor_desc *desc);
    tenrec_tensor_free_fn *free_fn;
    void *arg;
};

/* Applies to messages that arrive later; NULL restores the default. The functions are called
 * from any thread and must not block.
 *
 * a        copied
 * errors   EINVAL (size, no alloc)
 */
tenrec_status tenrec_worker_set_allocator(struct tenrec_worker *w, const struct tenrec_allocator *a,
                                          tenrec_error *err);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
