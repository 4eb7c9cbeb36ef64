/* SPDX-License-Identifier: Apache-2.0 */
/* store.h - the operations behind a store: each kind here, and the adapter of plugins, has these.
 * Keys arrive here with every prefix in front.
 *
 * Deadlines are CLOCK_MONOTONIC nanoseconds, and every operation of a longer one is given the same:
 * at its deadline an operation stops waiting for keys and locks, and the store itself has
 * STORE_ANSWER_MS more to answer requests. No operation ends later than that, however many requests
 * it is made of. */
#ifndef TENREC_STORE_STORE_H
#define TENREC_STORE_STORE_H

#include <stdatomic.h>
#include <tenrec/store.h>

enum { STORE_ANSWER_MS = 80 }; /* a worker has 100 ms after its limit */

struct security;
struct store_backend;

struct store_value {
    void *data; /* owns; a NUL follows that is not counted */
    size_t len;
};

struct store_ops {
    tenrec_status (*set)(struct store_backend *b, const char *key, const void *data, size_t len,
                         uint64_t deadline_ns, tenrec_error *err);
    tenrec_status (*add)(struct store_backend *b, const char *key, int64_t delta,
                         uint64_t deadline_ns, int64_t *ret, tenrec_error *err);
    tenrec_status (*compare_set)(struct store_backend *b, const char *key,
                                 const struct store_value *expected,
                                 const struct store_value *desired, uint64_t deadline_ns,
                                 struct store_value *ret, tenrec_error *err);
    /* Waits for all keys. At the deadline: ETIMEDOUT, and ret_missing[i] (n of them) for each; the
     * caller prefixes the text. Reads the values into `ret` (n, zeroed; the caller frees them)
     * unless that is NULL. */
    tenrec_status (*get)(struct store_backend *b, const char *const *keys, size_t n,
                         uint64_t deadline_ns, struct store_value *ret, bool *ret_missing,
                         tenrec_error *err);
    /* Waits for all keys until `until_ns`, then ETIMEDOUT and ret_missing; a remote store may
     * answer until the deadline. NULL: store_wait_then_check is used. */
    tenrec_status (*wait_round)(struct store_backend *b, const char *const *keys, size_t n,
                                uint64_t until_ns, uint64_t deadline_ns, bool *ret_missing,
                                tenrec_error *err);
    /* ret_missing[i] for each key, without waiting. */
    tenrec_status (*check)(struct store_backend *b, const char *const *keys, size_t n,
                           uint64_t deadline_ns, bool *ret_missing, tenrec_error *err);
    /* *ret: how many of them existed. */
    tenrec_status (*delete_keys)(struct store_backend *b, const char *const *keys, size_t n,
                                 uint64_t deadline_ns, size_t *ret, tenrec_error *err);
    tenrec_status (*num_keys)(struct store_backend *b, uint64_t deadline_ns, int64_t *ret,
                              tenrec_error *err);
    /* Frees `b`; changes for other processes are written until the deadline. */
    void (*cut)(struct store_backend *b); /* store_cut; may be NULL */
    void (*destroy)(struct store_backend *b, uint64_t deadline_ns);
};

struct store_backend {
    const struct store_ops *ops;
    atomic_uint refs;
    char name[300]; /* "tcp store 127.0.0.1:29500" */
    char at[80];    /* of a plugin's: "10.0.0.3:6379", or "" where it has no address */
};

/* A handle of its own on `b`, of which it takes one reference (always); keys
 * get `prefix` in front. */
tenrec_status store_handle_new(struct store_backend *b, const char *prefix,
                               struct tenrec_store **ret, tenrec_error *err);

/* As tenrec_store_close, with a deadline for changes for other processes. */
void store_close(struct tenrec_store *s, uint64_t deadline_ns);

/* Ends the waits of other threads for the store's answer, with EPEER_LOST; a kind that asks no
 * server may ignore that. Later operations work. */
void store_cut(struct tenrec_store *s);

/* One round of a wait (store_rounds.h): as store_get_all without values until `until_ns`, but the
 * store may answer until the deadline whether the keys are there. errors: ETIMEDOUT (the keys are
 * not) */
tenrec_status store_wait_round(struct tenrec_store *s, const char *const *keys, size_t n,
                               uint64_t until_ns, uint64_t deadline_ns, bool *ret_missing,
                               tenrec_error *err);

/* A round where a wait cannot be canceled: it ends at a deadline of its own, and the keys are
 * checked afterwards. */
tenrec_status store_wait_then_check(struct store_backend *b, const char *const *keys, size_t n,
                                    uint64_t until_ns, uint64_t deadline_ns, bool *ret_missing,
                                    tenrec_error *err);

/* The address of a plugin's store, "" if unknown. Lives as long as `s`. */
const char *store_at(const struct tenrec_store *s);

/* The kinds. `path` and `name` follow the "://". A TCP store proves the secret of `security`
 * (shared; NULL: none), and fails with EPERM if a side is refused or only one has a secret. */
tenrec_status store_tcp_open(const char *host, uint16_t port, struct security *security,
                             uint64_t deadline_ns, struct tenrec_store **ret, tenrec_error *err);
/* num_workers: number of openers, of which the last to leave removes the file; 0: none does. */
tenrec_status store_file_open(const char *path, uint32_t num_workers, uint64_t deadline_ns,
                              struct tenrec_store **ret, tenrec_error *err);
tenrec_status store_memory_open(const char *name, struct tenrec_store **ret, tenrec_error *err);

/* Opens a store whose scheme is none of the kinds above. Only the layer above knows plugins, and
 * passes its opener down with `arg`. errors: EINVAL for a text that is no URL of a store at all */
typedef tenrec_status store_open_fn(void *arg, const char *url, uint64_t deadline_ns,
                                    struct tenrec_store **ret, tenrec_error *err);

/* Opens a URL of one of the kinds above; `open_other` opens any other. */
tenrec_status store_open_url(const char *url, struct security *security, store_open_fn *open_other,
                             void *arg, uint64_t deadline_ns, struct tenrec_store **ret,
                             tenrec_error *err);

/* As the public functions, with a deadline. */
tenrec_status store_set(struct tenrec_store *s, const char *key, const void *data, size_t len,
                        uint64_t deadline_ns, tenrec_error *err);
tenrec_status store_add(struct tenrec_store *s, const char *key, int64_t delta,
                        uint64_t deadline_ns, int64_t *ret, tenrec_error *err); /* ret: or NULL */
tenrec_status store_compare_set(struct tenrec_store *s, const char *key,
                                const struct store_value *expected,
                                const struct store_value *desired, uint64_t deadline_ns,
                                struct store_value *ret, tenrec_error *err); /* ret: or NULL */
/* The same for texts. ret: owns; NULL after an error. */
tenrec_status store_swap_text(struct tenrec_store *s, const char *key, const char *from,
                              const char *to, uint64_t deadline_ns, char **ret, tenrec_error *err);
tenrec_status store_num_keys(struct tenrec_store *s, uint64_t deadline_ns, int64_t *ret,
                             tenrec_error *err);

/* Checks which keys are missing now. */
tenrec_status store_check_all(struct tenrec_store *s, const char *const *keys, size_t n,
                              uint64_t deadline_ns, bool *ret_missing, tenrec_error *err);
/* Waits for all and reads them. ret: n, filled only on success; free() each; NULL: only waits.
 * After ETIMEDOUT ret_missing (n, or NULL) and the text report the missing keys. */
tenrec_status store_get_all(struct tenrec_store *s, const char *const *keys, size_t n,
                            uint64_t deadline_ns, struct store_value *ret, bool *ret_missing,
                            tenrec_error *err);
/* Reads the current value of a key, which other processes may remove at any time: ret->data is NULL
 * without a value. */
tenrec_status store_read(struct tenrec_store *s, const char *key, uint64_t deadline_ns,
                         struct store_value *ret, tenrec_error *err);
/* Removes all keys, of which some may be missing; *ret (or NULL): how many of them existed. */
tenrec_status store_remove_all(struct tenrec_store *s, const char *const *keys, size_t n,
                               uint64_t deadline_ns, size_t *ret, tenrec_error *err);
tenrec_status store_remove(struct tenrec_store *s, const char *key, uint64_t deadline_ns,
                           tenrec_error *err);
void store_values_free(struct store_value *values, size_t n);

/* The keys "<prefix>/0" to "<prefix>/<n - 1>" in one block: free() it. NULL: no memory. */
const char **store_numbered_keys(const char *prefix, size_t n);

/* Counts this process at `init/`, for which torch's constructor waits. */
tenrec_status store_count_init(struct tenrec_store *s, uint64_t deadline_ns, tenrec_error *err);
/* Returns in *ret whether a process has been counted there. */
tenrec_status store_has_init(struct tenrec_store *s, uint64_t deadline_ns, bool *ret,
                             tenrec_error *err);
/* Writes what is no number there, at which torch's constructor fails. */
tenrec_status store_fail_init(struct tenrec_store *s, uint64_t deadline_ns, tenrec_error *err);

/* The time until which a store may answer an operation with that deadline. */
uint64_t store_answer_ns(uint64_t deadline_ns);

/* The deadline of a program's limit. errors: EINVAL (the limit is negative) */
tenrec_status store_deadline(int64_t ms, uint64_t *ret_ns, tenrec_error *err);

#endif
