/* SPDX-License-Identifier: Apache-2.0 */
/* tenrec/store.h - the store in which workers meet: a small shared key/value store, and a process
 * group (barrier, all_gather) over it.
 *
 * The TCP and file stores use the protocols of torch.distributed's TCPStore and FileStore, so you
 * can share a store with PyTorch processes. Keys
 * are texts, values are bytes. Every function that may wait takes `ms`, the
 * limit of the whole call in milliseconds: 0 does not wait for others, TENREC_TIMEOUT_NONE waits
 * for ever, and a negative limit is refused. At its limit a call stops waiting; the store has 100
 * ms more to answer the request. Any thread may call any function, even for the same store. A
 * waiting call does not block other callers.
 */
#ifndef TENREC_STORE_H
#define TENREC_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tenrec/error.h>
#include <tenrec/future.h> /* TENREC_TIMEOUT_NONE */

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define TENREC_STORE_MAX_KEY 8192                /* bytes, prefixes included */
#define TENREC_STORE_MAX_VALUE ((size_t)8 << 20) /* bytes */

struct tenrec_store;
struct tenrec_store_server;
struct tenrec_process_group;

/* Opens a store.
 *
 * url      borrowed: `tcp://host:port` (connects; retries until the limit, as
 *          the server may start later), `file://path`, `memory://name`
 *          (shared by name inside this process), or that of a store plugin
 *          (tenrec/store_plugin.h), with its options as the config says that
 *          TENREC_CONFIG names. A `tcp://` store proves the group secret, or speaks TLS,
 *          and asks the same of the server, as that config's `security:` and the environment say
 * ret      owns: tenrec_store_close it
 * errors   EINVAL (names the error in the url), ECONNECT, ETIMEDOUT, EPROTOCOL,
 *          EOS, ENOMEM; of `tcp://` also EPERM (another secret, authority or security mode),
 *          EPEER_LOST (the server gives no proof, or speaks no TLS), ECONFIG (`security:`, or a
 *          secret or certificate that cannot be read); of a plugin also EPLUGIN, EABI, ECONFIG
 *          (it refuses our credentials)
 * source   torch.distributed.TCPStore, FileStore, HashStore
 */
tenrec_status tenrec_store_open(const char *url, int64_t ms, struct tenrec_store **ret,
                                tenrec_error *err);

/* Opens a view of `s` that puts `prefix` and a slash before every key. The view keeps the store
 * open.
 *
 * source   torch.distributed.PrefixStore
 */
tenrec_status tenrec_store_open_prefix(struct tenrec_store *s, const char *prefix,
                                       struct tenrec_store **ret, tenrec_error *err);

/* Releases a store or view. The last release closes the connection within a second. No call on it
 * may be in progress. NULL is allowed. */
void tenrec_store_close(struct tenrec_store *s);

/* The name of the store in error texts: "tcp store 127.0.0.1:29500". Lives as long as `s`. */
const char *tenrec_store_name(const struct tenrec_store *s);

/* Stores `len` bytes under `key`, replaces any value, and wakes the waiters. */
tenrec_status tenrec_store_set(struct tenrec_store *s, const char *key, const void *data,
                               size_t len, int64_t ms, tenrec_error *err);

/* Waits until `key` exists and reads its value.
 *
 * ret      owns: free() it; a NUL follows the bytes and is not counted
 * errors   ETIMEDOUT names the key and the store; EPEER_LOST if the store is lost
 */
tenrec_status tenrec_store_get(struct tenrec_store *s, const char *key, int64_t ms, void **ret,
                               size_t *ret_len, tenrec_error *err);

/* Adds `delta` to the decimal number under `key`; a missing key counts as 0.
 *
 * ret      may be NULL; the sum
 * errors   EINVAL if the value is not a number or the sum overflows
 */
tenrec_status tenrec_store_add(struct tenrec_store *s, const char *key, int64_t delta, int64_t ms,
                               int64_t *ret, tenrec_error *err);

/* Stores `desired` under `key` if its value is `expected`; an empty `expected` also matches a
 * missing key.
 *
 * ret      owns: free() it; the value of the key now, or `expected` if the key is still missing
 */
tenrec_status tenrec_store_compare_set(struct tenrec_store *s, const char *key,
                                       const void *expected, size_t expected_len,
                                       const void *desired, size_t desired_len, int64_t ms,
                                       void **ret, size_t *ret_len, tenrec_error *err);

/* Waits until all keys exist. The error of a timeout names the missing keys. */
tenrec_status tenrec_store_wait(struct tenrec_store *s, const char *const *keys, size_t n,
                                int64_t ms, tenrec_error *err);

/* Sets *ret to true if all keys exist now. */
tenrec_status tenrec_store_check(struct tenrec_store *s, const char *const *keys, size_t n,
                                 int64_t ms, bool *ret, tenrec_error *err);

/* Removes `key`.
 *
 * ret      may be NULL; whether the key existed
 */
tenrec_status tenrec_store_delete(struct tenrec_store *s, const char *key, int64_t ms, bool *ret,
                                  tenrec_error *err);

/* Returns the number of keys in the whole store, including keys outside a view. */
tenrec_status tenrec_store_num_keys(struct tenrec_store *s, int64_t ms, int64_t *ret,
                                    tenrec_error *err);

/* Serves a TCP store on a separate thread until it is dropped. If the environment, or `security:`
 * in the config of TENREC_CONFIG, has a group secret, its clients must prove that secret.
 * `store_plain` says which other clients are admitted.
 *
 * host     borrowed: address or name to listen on; NULL or "" for all
 * port     0: the kernel chooses
 * ret      owns: tenrec_store_server_drop it
 * ret_port may be NULL; the port it listens on
 * errors   EINVAL, EOS (address in use), ENOMEM, ECONFIG (`security:`, or a secret that cannot be
 *          read)
 */
tenrec_status tenrec_store_server_new(const char *host, uint16_t port,
                                      struct tenrec_store_server **ret, uint16_t *ret_port,
                                      tenrec_error *err);

/* Closes all connections and discards all keys. NULL is allowed. */
void tenrec_store_server_drop(struct tenrec_store_server *server);

/* Makes a group of `world` processes that meet under `name` in a store. It needs no RPC, and does
 * nothing before the first barrier. You can reuse a name after the former group was dropped: the
 * n-th group of a rank meets the n-th group of the others. All processes must call its operations
 * in the same order. If two threads of a process call them at once, each needs its own group.
 *
 * s        shared (counted)
 * name     borrowed: 1 to 127 of [A-Za-z0-9_:-]
 * ret      owns: tenrec_process_group_drop it
 * errors   EINVAL (rank outside of 0..world-1, name), ENOMEM
 * source   torch.distributed's ProcessGroup
 */
tenrec_status tenrec_process_group_new(struct tenrec_store *s, int32_t rank, int32_t world,
                                       const char *name, struct tenrec_process_group **ret,
                                       tenrec_error *err);

/* Frees the group; its last rank also removes its keys from the store. NULL is allowed. */
void tenrec_process_group_drop(struct tenrec_process_group *pg);

/* Returns when all ranks have entered the barrier.
 *
 * errors   ETIMEDOUT names the missing ranks
 */
tenrec_status tenrec_process_group_barrier(struct tenrec_process_group *pg, int64_t ms,
                                           tenrec_error *err);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
