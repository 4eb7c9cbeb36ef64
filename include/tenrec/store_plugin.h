/* SPDX-License-Identifier: Apache-2.0 */
/* tenrec/store_plugin.h - the header of a store plugin.
 *
 * Workers meet in a store (tenrec/store.h). A store outside the core is a plugin of the kind
 * TENREC_PLUGIN_STORE, a shared object that exports only these three symbols:
 *
 *     tenrec_plugin             const data, as in tenrec/plugin.h
 *     tenrec_construct_options  check and complete one filled options struct
 *     tenrec_init_store         open the store that a URL names
 *
 * [ST-1] For a URL "SCHEME://...", in init_method or tenrec_store_open, the core uses the plugin
 * that the config's `stores:` names for SCHEME, or else the plugin SCHEME.
 *
 * [ST-2] Keys are texts of 1 to TENREC_STORE_MAX_KEY bytes that begin with a slash; values have 0
 * to TENREC_STORE_MAX_VALUE bytes of any kind. All clients of one URL see the same keys. The effect
 * of an operation that returned TENREC_OK is visible to every operation of any client that begins
 * later.
 *
 * [ST-3] Threads: any thread may call any operation but close, concurrently. A waiting operation
 * must not block others. The core calls no function of the plugin from inside another of its
 * operations.
 *
 * [ST-4] Deadlines are CLOCK_MONOTONIC nanoseconds, or TENREC_STORE_NEVER. They bound the whole
 * operation, including a reconnect. At its deadline an operation stops waiting for keys. It ends
 * at most 100 ms later, so that the store has time to answer. */
#ifndef TENREC_STORE_PLUGIN_H
#define TENREC_STORE_PLUGIN_H

#include <tenrec/plugin.h>
#include <tenrec/store.h> /* TENREC_STORE_MAX_KEY, TENREC_STORE_MAX_VALUE */

#ifdef __cplusplus
extern "C" {
#endif

#define TENREC_STORE_NEVER UINT64_MAX

/* [ST-20] The abilities that a store lacks. No group can meet in a store that lacks COMPARE. */
enum tenrec_store_lacks {
    TENREC_STORE_LACKS_COMPARE = 1, /* add and compare_set fail with EUNSUPPORTED */
    TENREC_STORE_LACKS_WATCH = 2,   /* a wait polls, and may wake later than a second */
    TENREC_STORE_LACKS_EXPIRY = 4,  /* keys stay when all that had the store open have ended */
    TENREC_STORE_LACKS_LARGE = 8,   /* set of a value above 512 KiB fails with ETOOBIG */
};

#define TENREC_STORE_SMALL_VALUE ((size_t)512 << 10) /* bytes, in any store */

struct tenrec_plugin_store;

/* [ST-5] Receives the value of key `i`. `data` is borrowed during the call. If it returns an error
 * (ENOMEM), the operation returns that error. */
typedef tenrec_status tenrec_store_value_fn(void *arg, uint32_t i, const void *data, size_t len,
                                            tenrec_error *err);

/* A value that set_all stores. Never grows: callers pass arrays of them. */
struct tenrec_store_item {
    const char *key;
    const void *data;
    size_t len;
};

/* The operations of a store. All arguments are borrowed during the call. [ST-6] Errors, unless a
 * slot says more: EPEER_LOST (the store became unreachable and did not return before the deadline,
 * or has lost its data), ETIMEDOUT (connected, but no answer), ECONFIG (access denied: password,
 * rights), EPROTOCOL (malformed answer), ETOOBIG (store full), ENOMEM. The core puts the store's
 * name before the text. If the outcome of a modification is unknown, the error says so, and the
 * plugin does not repeat the modification. `name`, `address`, `wait_round`, `cut` and `set_all` are
 * optional. */
struct tenrec_store_ops {
    uint32_t size;  /* sizeof(struct tenrec_store_ops) */
    uint32_t lacks; /* enum tenrec_store_lacks; 0: nothing */

    /* [ST-7] Returns the store's name for error texts, without passwords: "redis store
     * 10.0.0.3:6379/jobs". The store owns it until close. NULL: the URL without the password. */
    const char *(*name)(struct tenrec_plugin_store *self);

    /* [ST-8] Stores `len` bytes under `key`, replaces any value, and wakes the key's waiters. May
     * block until the deadline. */
    tenrec_status (*set)(struct tenrec_plugin_store *self, const char *key, const void *data,
                         size_t len, uint64_t deadline_ns, tenrec_error *err);

    /* [ST-9] Adds to the decimal text under `key`; a missing key counts as 0. Wakes the key's
     * waiters. May block. If the value is not a number, or the sum exceeds 64 bits, it changes
     * nothing and fails with EINVAL. */
    tenrec_status (*add)(struct tenrec_plugin_store *self, const char *key, int64_t delta,
                         uint64_t deadline_ns, int64_t *ret, tenrec_error *err);

    /* [ST-10] Stores `desired` under `key` if its value is `expected`; an empty `expected` also
     * matches a missing key. Wakes the waiters after a change. `fn` receives, as value 0, the value
     * of the key now, or `expected` if the key is still missing. May block. */
    tenrec_status (*compare_set)(struct tenrec_plugin_store *self, const char *key,
                                 const void *expected, size_t expected_len, const void *desired,
                                 size_t desired_len, uint64_t deadline_ns,
                                 tenrec_store_value_fn *fn, void *arg, tenrec_error *err);

    /* [ST-11] Waits until all `n` keys exist, then passes each value to `fn` once, in any order.
     * With a NULL `fn` it only waits. At the deadline it fails with ETIMEDOUT without a text, and
     * sets ret_missing[i] of each key. If the store does not answer, it fails with EPEER_LOST. It
     * may block, but without using processor time. */
    tenrec_status (*get)(struct tenrec_plugin_store *self, const char *const *keys, uint32_t n,
                         uint64_t deadline_ns, tenrec_store_value_fn *fn, void *arg,
                         bool *ret_missing, tenrec_error *err);

    /* [ST-12] Sets ret_missing[i] for each of the `n` keys. Waits for no key. */
    tenrec_status (*check)(struct tenrec_plugin_store *self, const char *const *keys, uint32_t n,
                           uint64_t deadline_ns, bool *ret_missing, tenrec_error *err);

    /* [ST-13] Removes those of the keys that exist, and sets *ret to their number. */
    tenrec_status (*remove)(struct tenrec_plugin_store *self, const char *const *keys, uint32_t n,
                            uint64_t deadline_ns, uint32_t *ret, tenrec_error *err);

    /* [ST-14] Returns the number of keys in the store. */
    tenrec_status (*num_keys)(struct tenrec_plugin_store *self, uint64_t deadline_ns, int64_t *ret,
                              tenrec_error *err);

    /* [ST-15] Closes the connection, joins the threads of the plugin and frees self->impl. The
     * keys remain. Called once, last, with no operation in progress. It writes what other clients
     * still need, and may block until the deadline, which is at most a second away. */
    void (*close)(struct tenrec_plugin_store *self, uint64_t deadline_ns);

    /* [ST-16] Returns the numeric address of the store's server: "10.0.0.3:6379",
     * "[fd00::1]:6379". A worker advertises the local address from which it reaches that server.
     * Called once, after opening. The store owns the address until close. NULL: this host, or
     * unknown. */
    const char *(*address)(struct tenrec_plugin_store *self);

    /* [ST-18] One round of a long wait. It waits like get without values until `until_ns`. The
     * store then has until the deadline to answer which keys are missing. NULL: the core calls
     * get, then check. */
    tenrec_status (*wait_round)(struct tenrec_plugin_store *self, const char *const *keys,
                                uint32_t n, uint64_t until_ns, uint64_t deadline_ns,
                                bool *ret_missing, tenrec_error *err);

    /* [ST-19] Ends the operations of other threads that wait for the server, with EPEER_LOST.
     * Later operations work. NULL: they end at their deadlines. */
    void (*cut)(struct tenrec_plugin_store *self);

    /* [ST-21] Stores `n` values, each as set does, with one question to the server where it can.
     * After an error some of them may be stored. NULL: the core sets each. */
    tenrec_status (*set_all)(struct tenrec_plugin_store *self, const struct tenrec_store_item *item,
                             uint32_t n, uint64_t deadline_ns, tenrec_error *err);
};

/* Services of the core for a store plugin. Grows at its end only. */
struct tenrec_store_host {
    TENREC_PLUGIN_HOST
};

/* One open store. The core allocates it; init_store sets ops and impl. Grows at its end. */
struct tenrec_plugin_store {
    const struct tenrec_store_ops *ops;
    void *impl;
    const struct tenrec_store_host *host; /* set already, like log_part */
    const char *log_part;                 /* of its log lines */
};

struct tenrec_store_init {
    uint32_t size; /* sizeof(struct tenrec_store_init) */
    uint32_t reserved;
    const char *url;      /* without a query (?rank=...); may hold a password */
    const void *options;  /* yours, lives as long as the store */
    uint64_t deadline_ns; /* of the opening */
};

/* [ST-17] Opens the store and checks that it can be used. While no server listens, it retries to
 * connect until the deadline. After a failure it frees all resources, since close is not called.
 * Errors: EINVAL, whose text names the error in the URL; ECONNECT; and those of the operations.
 * Several threads may call it at once. */
typedef tenrec_status tenrec_init_store_fn(const struct tenrec_store_init *in,
                                           struct tenrec_plugin_store *self, tenrec_error *err);

#define TENREC_STORE_PLUGIN_HEADER TENREC_PLUGIN_HEADER_OF(TENREC_PLUGIN_STORE)

/* A plugin that defines it with another signature does not compile. */
extern TENREC_EXPORT tenrec_init_store_fn tenrec_init_store;

#ifdef __cplusplus
}
#endif

#endif
