/* SPDX-License-Identifier: Apache-2.0 */
/* tenrec/store_plugin.h - all the author of a store includes.
 *
 * A store is where workers find each other (tenrec/store.h). One that the core
 * does not have itself is a plugin of the kind TENREC_PLUGIN_STORE, a shared
 * object that exports three symbols and no others:
 *
 *     tenrec_plugin             const data, as in tenrec/plugin.h
 *     tenrec_construct_options  check and complete one filled options struct
 *     tenrec_init_store         open the store that a URL names
 *
 * "SCHEME://..." as init_method, or given to tenrec_store_open, is opened by the
 * plugin that the config's `stores:` names for SCHEME, else by the plugin SCHEME.
 *
 * Keys are texts of 1 to TENREC_STORE_MAX_KEY bytes that begin with a slash;
 * values have 0 to TENREC_STORE_MAX_VALUE bytes of any kind. All who open the
 * same URL see the same keys. What an operation returned with TENREC_OK did is
 * seen by every operation that begins later, whoever makes it.
 *
 * Threads: all operations but close come from any thread, concurrently; one
 * that waits keeps no other from its work. Nothing of the plugin is called from
 * inside another of its operations.
 *
 * Deadlines are CLOCK_MONOTONIC nanoseconds, TENREC_STORE_NEVER for none. They
 * bound the whole operation, connecting anew included: at its deadline an
 * operation stops waiting for keys, and it ends 100 ms later at most, which the
 * store itself has to answer what it was asked.
 */
#ifndef TENREC_STORE_PLUGIN_H
#define TENREC_STORE_PLUGIN_H

#include <tenrec/plugin.h>
#include <tenrec/store.h> /* TENREC_STORE_MAX_KEY, TENREC_STORE_MAX_VALUE */

#ifdef __cplusplus
extern "C" {
#endif

#define TENREC_STORE_NEVER UINT64_MAX

struct tenrec_plugin_store;

/* Takes the value of key `i`: `data` is borrowed during the call. What it
 * returns (ENOMEM) is for the operation to return. */
typedef tenrec_status tenrec_store_value_fn(void *arg, uint32_t i, const void *data, size_t len,
                                            tenrec_error *err);

/* What a plugin can do with its store. All arguments are borrowed during the
 * call. Errors, unless a slot says more: EPEER_LOST (the store went away and did
 * not come back before the deadline, or has lost what it held), ETIMEDOUT (it is
 * there, but does not answer), ECONFIG (it refuses us: password, rights),
 * EPROTOCOL (it answers what makes no sense), ETOOBIG (it is full), ENOMEM. An
 * operation that changes something and does not know whether that was done says
 * so in its error, and does not do it twice by itself. Every slot is mandatory
 * but `name` and `address`. */
struct tenrec_store_ops {
    uint32_t size; /* sizeof(struct tenrec_store_ops) */
    uint32_t reserved;

    /* What errors call it: "redis store 10.0.0.3:6379/jobs". Without passwords.
     * Owned by the store, lives as long. NULL: its URL without the password. */
    const char *(*name)(struct tenrec_plugin_store *self);

    /* Puts `len` bytes under `key`, over what was there, and wakes who waits for
     * it. May block until the deadline. */
    tenrec_status (*set)(struct tenrec_plugin_store *self, const char *key, const void *data,
                         size_t len, uint64_t deadline_ns, tenrec_error *err);

    /* Adds to the decimal text under `key`; a missing key counts as 0. Wakes who
     * waits. May block. EINVAL: the value is no number, or the sum is beyond 64
     * bits; nothing is changed then. */
    tenrec_status (*add)(struct tenrec_plugin_store *self, const char *key, int64_t delta,
                         uint64_t deadline_ns, int64_t *ret, tenrec_error *err);

    /* Puts `desired` under `key` when `expected` is there; an empty `expected`
     * also stands for a missing key. Wakes who waits when it did. `fn` gets, as
     * value 0, what is under the key now, or `expected` when the key is missing
     * and stays so. May block. */
    tenrec_status (*compare_set)(struct tenrec_plugin_store *self, const char *key,
                                 const void *expected, size_t expected_len, const void *desired,
                                 size_t desired_len, uint64_t deadline_ns,
                                 tenrec_store_value_fn *fn, void *arg, tenrec_error *err);

    /* Waits until all `n` keys are there, then gives their values to `fn`, each
     * once, in any order; a NULL `fn` only waits. When the deadline comes first:
     * ETIMEDOUT without a text, and ret_missing[i] of each key; a store that does
     * not answer is EPEER_LOST here. May block, and uses no processor time while
     * it does. */
    tenrec_status (*get)(struct tenrec_plugin_store *self, const char *const *keys, uint32_t n,
                         uint64_t deadline_ns, tenrec_store_value_fn *fn, void *arg,
                         bool *ret_missing, tenrec_error *err);

    /* Sets ret_missing[i] of each of the `n` keys. Waits for no key. */
    tenrec_status (*check)(struct tenrec_plugin_store *self, const char *const *keys, uint32_t n,
                           uint64_t deadline_ns, bool *ret_missing, tenrec_error *err);

    /* Removes the keys that are there; *ret: how many. */
    tenrec_status (*remove)(struct tenrec_plugin_store *self, const char *const *keys, uint32_t n,
                            uint64_t deadline_ns, uint32_t *ret, tenrec_error *err);

    /* How many keys the store has. */
    tenrec_status (*num_keys)(struct tenrec_plugin_store *self, uint64_t deadline_ns, int64_t *ret,
                              tenrec_error *err);

    /* Lets go of the connection and frees self->impl; the keys stay. Comes once,
     * last, with no operation under way; joins what threads the plugin has. May
     * block for a second at most. */
    void (*close)(struct tenrec_plugin_store *self);

    /* Where the store's server is, as numbers: "10.0.0.3:6379", "[fd00::1]:6379".
     * The address from which a worker reaches it is the one that it tells to the
     * others. Asked once, after opening; owned by the store, lives as long. NULL:
     * this host, or not known. */
    const char *(*address)(struct tenrec_plugin_store *self);
};

/* What the core does for a store plugin. Grows at its end only. */
struct tenrec_store_host {
    uint32_t size; /* sizeof(struct tenrec_store_host) */
    uint16_t abi_major, abi_minor;

    /* Is a message of this level wanted, and take it. From any thread. */
    bool (*log_enabled)(struct tenrec_plugin_store *self, enum tenrec_log_level level);
    void (*log)(struct tenrec_plugin_store *self, enum tenrec_log_level level, const char *fmt, ...)
        TENREC_PRINTF(3, 4);
};

/* One open store. The core allocates it; init_store sets ops and impl. */
struct tenrec_plugin_store {
    const struct tenrec_store_ops *ops;
    void *impl;
    const struct tenrec_store_host *host; /* set already */
};

struct tenrec_store_init {
    uint32_t size; /* sizeof(struct tenrec_store_init) */
    uint32_t reserved;
    const char *url;      /* all of it but a query (?rank=...); may hold a password */
    const void *options;  /* yours, lives as long as the store */
    uint64_t deadline_ns; /* of the opening */
};

/* Opens the store: connects, retrying until the deadline where nobody listens
 * yet, and finds out whether it can be used. On failure leaves nothing behind;
 * close is not called. EINVAL: what is wrong with the URL; ECONNECT, and the
 * errors of the operations. Any thread, several at once. */
typedef tenrec_status tenrec_init_store_fn(const struct tenrec_store_init *in,
                                           struct tenrec_plugin_store *self, tenrec_error *err);

#define TENREC_STORE_PLUGIN_HEADER TENREC_PLUGIN_HEADER_OF(TENREC_PLUGIN_STORE)

/* A plugin that defines it with another signature does not compile. */
extern TENREC_EXPORT tenrec_init_store_fn tenrec_init_store;

#ifdef __cplusplus
}
#endif

#endif
