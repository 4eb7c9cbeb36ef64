/* SPDX-License-Identifier: Apache-2.0 */
/* tenrec/rref.h - remote references to values that remain with the worker that made them.
 *
 *     tenrec_remote(w, "server", "make_table", args, n, NULL, &r, err);
 *     tenrec_rref_rpc_sync(r, "lookup", &key, 1, NULL, &value, err);
 *     tenrec_rref_to_here(r, NULL, &copy, err);
 *     tenrec_rref_drop(r);
 *
 * A reference names a value. The owner of the value, one of the workers, keeps it alive until the
 * last reference to it in the group is dropped. A reference is shared (counted) within a worker,
 * and passes between workers as an argument or in a result: tenrec_value_rref(r) makes a value of
 * it. A function with references as arguments starts when the owner knows all of them.
 *
 * The lifetime is explicit: drop every reference that was returned as `ret` or shared. When a
 * worker is lost, references to its values fail with EPEER_LOST, and its own references are
 * released.
 */
#ifndef TENREC_RREF_H
#define TENREC_RREF_H

#include <tenrec/rpc.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* ---- C objects as values --------------------------------------------------- */

/* The functions of a type of objects. Lives as long as its objects; usually static. */
struct tenrec_object_type {
    uint32_t size; /* sizeof(struct tenrec_object_type) */
    uint32_t reserved;
    const char *name; /* 1..127 bytes; names the type on the wire and in errors */

    /* Frees `data`; on the thread that drops the last share. NULL: nothing to free. */
    void (*free_fn)(void *data, void *arg);

    /* Make a value of `data`, and data of a value; both NULL if objects of this type do not
     * travel. `ret` of encode comes from tenrec_value_copy and is dropped by Tenrec. Must not
     * block. */
    tenrec_status (*encode)(const void *data, void *arg, struct tenrec_value **ret,
                            tenrec_error *err);
    tenrec_status (*decode)(const struct tenrec_value *value, void *arg, void **ret,
                            tenrec_error *err);
    void *arg;
    uint64_t more[4]; /* zero */
};

/* Wraps `data`; tenrec_value_object(o) is a value of it.
 *
 * type     borrowed while objects of it live
 * data     taken on success
 * ret      shares: drop it
 * errors   EINVAL (a name is missing, encode without decode), ENOMEM
 */
tenrec_status tenrec_object_new(const struct tenrec_object_type *type, void *data,
                                struct tenrec_object **ret, tenrec_error *err);
struct tenrec_object *tenrec_object_share(struct tenrec_object *o);
void tenrec_object_drop(struct tenrec_object *o); /* NULL is allowed */

/* The data of an object of this type; NULL for one of another type and for
 * NULL. Borrowed until the object is dropped. */
void *tenrec_object_data(const struct tenrec_object *o, const struct tenrec_object_type *type);

/* The same for a value, with an error that names both types.
 *
 * errors   EINVAL (no object, or of another type)
 */
tenrec_status tenrec_object_get(const struct tenrec_value *v, const struct tenrec_object_type *type,
                                void **ret, tenrec_error *err);

/* Lets `w` receive objects of this type. Register a type on both sides if its objects are sent.
 *
 * type     borrowed until tenrec_worker_drop
 * errors   EINVAL, EEXIST (another type of that name), ENOMEM
 */
tenrec_status tenrec_worker_register_object_type(struct tenrec_worker *w,
                                                 const struct tenrec_object_type *type,
                                                 tenrec_error *err);

/* ---- made, shared, dropped -------------------------------------------------- */

/* Calls `function` on `to`, which keeps the result as its owner. Returns at once; later failures
 * are reported by every use of the reference.
 *
 * to       name of a worker, oneself included
 * options  timeout_ms limits the creation; `into` and TENREC_ONE_WAY are refused
 * ret      shares: drop it
 * errors   EINVAL, EPEER_UNKNOWN, EAGAIN, EDEVICE (a tensor is on a device that no map names),
 *          EUNSUPPORTED (this worker is not a member, an object that does not travel), ENOMEM,
 *          ESHUTDOWN
 * threads  any, also inline handlers and callbacks
 * source   torch.distributed.rpc.remote
 */
tenrec_status tenrec_remote(struct tenrec_worker *w, const char *to, const char *function,
                            const struct tenrec_value *args, size_t n,
                            const struct tenrec_call_options *options, struct tenrec_rref **ret,
                            tenrec_error *err);

/* Makes a reference to a value that this worker owns.
 *
 * value    copied (tensors and objects shared)
 * ret      shares: drop it
 * errors   EINVAL, ENOMEM, ESHUTDOWN
 * source   torch.distributed.rpc.RRef(value)
 */
tenrec_status tenrec_rref_new(struct tenrec_worker *w, const struct tenrec_value *value,
                              struct tenrec_rref **ret, tenrec_error *err);

struct tenrec_rref *tenrec_rref_share(struct tenrec_rref *r);

/* The last drop notifies the owner. NULL is allowed; also after shutdown. */
void tenrec_rref_drop(struct tenrec_rref *r);

/* ---- known without a call -------------------------------------------------- */

bool tenrec_rref_is_owner(const struct tenrec_rref *r);
tenrec_peer tenrec_rref_owner(const struct tenrec_rref *r);
const char *tenrec_rref_owner_name(const struct tenrec_rref *r); /* borrowed from r */

/* Returns true once the owner has confirmed that it counts this reference; always at the owner.
 * Stays false if the creation failed. */
bool tenrec_rref_confirmed_by_owner(const struct tenrec_rref *r);

/* The future of the creation by tenrec_remote: nil once the owner keeps the result of the
 * function, even if that is an error.
 *
 * ret      shares: drop it
 * errors   EINVAL (was not made by tenrec_remote on this worker)
 */
tenrec_status tenrec_rref_future(struct tenrec_rref *r, struct tenrec_future **ret,
                                 tenrec_error *err);

/* "RRef(created_on=0, local_id=7) of 'worker1'": for people. */
#define TENREC_RREF_TEXT_MAX 256
const char *tenrec_rref_text(const struct tenrec_rref *r, char *buf, size_t len);

/* ---- the value ---------------------------------------------------------------- */

/* A copy of the value, fetched from the owner; at the owner copied here.
 *
 * options  timeout_ms; `into` receives the first tensor
 * ret      owns: tenrec_value_drop it; NULL discards the value
 * errors   the error of the creating function or of the creation, ETIMEDOUT,
 *          ENOTFOUND (released already), EPEER_LOST, EUNSUPPORTED (an object
 *          that does not travel), EINVAL, EWOULDBLOCK, ESHUTDOWN, ENOMEM
 * threads  any; not an inline handler or a callback
 * source   torch.distributed.rpc.RRef.to_here
 */
tenrec_status tenrec_rref_to_here(struct tenrec_rref *r, const struct tenrec_call_options *options,
                                  struct tenrec_value **ret, tenrec_error *err);

/* The same without waiting.
 *
 * ret      shares: drop it
 */
tenrec_status tenrec_rref_to_here_async(struct tenrec_rref *r,
                                        const struct tenrec_call_options *options,
                                        struct tenrec_future **ret, tenrec_error *err);

/* The value itself, at its owner; waits while it is being made.
 *
 * ms       at most this long; TENREC_TIMEOUT_DEFAULT: the rpc_timeout
 * ret      borrowed until r is dropped
 * errors   EINVAL (not the owner), ETIMEDOUT, the error of the creation,
 *          EWOULDBLOCK, ESHUTDOWN
 * source   torch.distributed.rpc.RRef.local_value
 */
tenrec_status tenrec_rref_local_value(struct tenrec_rref *r, int64_t ms,
                                      const struct tenrec_value **ret, tenrec_error *err);

/* ---- calls on the referenced value ------------------------------------------------ */

/* Call `function` on the owner with the referenced value as its first argument,
 * before `args`. The function starts when the value exists.
 *
 * ret, options, errors, threads  as tenrec_rpc_sync, tenrec_rpc_async and
 *          tenrec_remote; and the error of the creation
 * source   torch.distributed.rpc.RRef.rpc_sync, rpc_async, remote
 */
tenrec_status tenrec_rref_rpc_sync(struct tenrec_rref *r, const char *function,
                                   const struct tenrec_value *args, size_t n,
                                   const struct tenrec_call_options *options,
                                   struct tenrec_value **ret, tenrec_error *err);
tenrec_status tenrec_rref_rpc_async(struct tenrec_rref *r, const char *function,
                                    const struct tenrec_value *args, size_t n,
                                    const struct tenrec_call_options *options,
                                    struct tenrec_future **ret, tenrec_error *err);
tenrec_status tenrec_rref_remote(struct tenrec_rref *r, const char *function,
                                 const struct tenrec_value *args, size_t n,
                                 const struct tenrec_call_options *options,
                                 struct tenrec_rref **ret, tenrec_error *err);

/* ---- shutdown, leaks ------------------------------------------------------------------- */

/* Releases every reference of this worker to values of others, and waits until its own values
 * have no references. The references can then only be dropped. A graceful shutdown includes
 * this.
 *
 * ms       limit of the whole; TENREC_TIMEOUT_DEFAULT: the rpc_timeout
 * errors   ETIMEDOUT (names the remaining references), EWOULDBLOCK, ESHUTDOWN
 * source   torch's _delete_all_user_and_unforked_owner_rrefs
 */
tenrec_status tenrec_rref_release_all(struct tenrec_worker *w, int64_t ms, tenrec_error *err);

/* Runs after the references of a lost worker were released: it held `n_forks` references to
 * values of this worker, and `n_freed` of these values were freed. Called on a loop thread: must
 * not block. NULL removes the callback. */
typedef void tenrec_rrefs_released_fn(struct tenrec_worker *w, tenrec_peer lost, size_t n_forks,
                                      size_t n_freed, void *arg);
void tenrec_worker_set_rrefs_released_callback(struct tenrec_worker *w,
                                               tenrec_rrefs_released_fn *fn, void *arg);

/* References that remain at shutdown are logged. With the check on, tenrec_shutdown also returns
 * EBUSY and names the first. Off by default.
 *
 * source   torch's _set_rref_ignore_leak
 */
void tenrec_worker_set_rref_leak_check(struct tenrec_worker *w, bool on);

/* Sets the place that the report of leaks names, for this thread's next call of tenrec_remote,
 * tenrec_rref_new or tenrec_rref_remote: tenrec_rref_set_origin(__FILE__, __LINE__). A failed call
 * also consumes the place.
 *
 * file     borrowed for the life of the process
 */
void tenrec_rref_set_origin(const char *file, int line);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
