/* SPDX-License-Identifier: Apache-2.0 */
/* store.h - stores for the rest of the library. Every kind, here or of a plugin, implements the
 * table of tenrec/store_plugin.h.
 *
 * Deadlines are CLOCK_MONOTONIC nanoseconds, and every operation of a longer one is given the same:
 * at its deadline an operation stops waiting for keys and locks, and the store itself has
 * STORE_ANSWER_MS more to answer requests. No operation ends later than that, however many requests
 * it is made of. */
#ifndef TENREC_STORE_STORE_H
#define TENREC_STORE_STORE_H

#include <stdatomic.h>
#include <tenrec/store.h>
#include <tenrec/store_plugin.h>

/* The schemes of stores: of the kinds of this library, and of the plugins that a configuration
 * names, loaded and with their options filled. Opens nothing. */

struct chain_addition;
struct loop;
struct security;
struct stores;
struct tenrec_config;
struct config_settings;

#define STORES_SCHEME_MAX 64

/* Copies "redis" of "redis://host/jobs". Returns false if the URL has no scheme for a plugin. */
bool stores_scheme(const char *url, char ret[STORES_SCHEME_MAX]);
/* The scheme of an init method if only a plugin knows it, in `buf`; else NULL. */
const char *stores_plugin_scheme(const char *init_method, char buf[STORES_SCHEME_MAX]);

/* Of a kind of this library; NULL: only a plugin may know the scheme. */
tenrec_init_store_fn *stores_own(const char *scheme);

/* Loads all stores that `stores:` names, and the plugin of `scheme` (NULL: none). The error of an
 * entry that is not needed is kept for stores_find.
 *
 * config   NULL: the plugin of that name, with its defaults; may be changed or dropped afterwards
 * ret      shares (counted); stores_drop
 * errors   with the position: ECONFIG (also of a plugin's construct), EPLUGIN, EABI, EEXIST, ENOMEM
 */
tenrec_status stores_load(const struct tenrec_config *config, const char *scheme,
                          struct stores **ret, tenrec_error *err);

/* Loads, fills and checks the stores of init_method and of `stores:`, asks the plugin of the URL
 * about it, and releases all. errors: as above, of the first wrong entry */
tenrec_status stores_check(const struct tenrec_config *config, const struct config_settings *s,
                           tenrec_error *err);

struct stores *stores_share(struct stores *s);
void stores_drop(struct stores *s); /* NULL is fine */

/* The plugin for URLs that begin with "<scheme>://". Borrowed until the last stores_drop. */
struct stores_choice {
    const struct tenrec_plugin *plugin; /* NULL: a kind of this library */
    tenrec_init_store_fn *init;
    const void *options;
};

/* errors: ENOTFOUND (not configured), and the error of a failed loading */
tenrec_status stores_find(const struct stores *s, const char *scheme, struct stores_choice *ret,
                          tenrec_error *err);

/* The section `stores:` in the options of a chain, with the plugin that the init method needs. */
extern const struct chain_addition stores_addition;

/* Open stores. */

enum { STORE_ANSWER_MS = 80 }; /* a worker has 100 ms after its limit */

struct store_value {
    void *data; /* owns; a NUL follows that is not counted */
    size_t len;
};

/* An open store, which handles share. */
struct store_base {
    struct tenrec_plugin_store self;
    atomic_uint refs;
    struct stores *stores; /* shares: a plugin and its options; NULL: a kind of this library */
    char part[72];         /* "store/redis": the part of its log lines */
    char name[300];        /* "tcp store 127.0.0.1:29500" */
    char at[80];           /* "10.0.0.3:6379", or "" where it has no address */
};

/* A store or a view of one. */
struct tenrec_store {
    struct store_base *base; /* shares (counted) */
    size_t prefix_len;
    char prefix[]; /* in front of its keys */
};

/* Opens a store. url: as the kind expects it; `stores` (shared) keep the choice alive, or NULL. */
tenrec_status store_new(const struct stores_choice *choice, struct stores *stores, const char *url,
                        uint64_t deadline_ns, struct tenrec_store **ret, tenrec_error *err);

/* As tenrec_store_close, with a deadline for changes for other processes. */
void store_close(struct tenrec_store *s, uint64_t deadline_ns);

/* Ends the waits of other threads for the store's answer, with EPEER_LOST; a kind that asks no
 * server may ignore that. Later operations work. */
void store_cut(struct tenrec_store *s);

/* Closes idle connections of a TCP store; later operations open others. Does not block. */
void store_rest(struct tenrec_store *s);

/* One round of a wait (store_get_rounds): as store_get_all without values until `until_ns`, but the
 * store may answer until the deadline whether the keys are there. errors: ETIMEDOUT (the keys are
 * not) */
tenrec_status store_wait_round(struct tenrec_store *s, const char *const *keys, size_t n,
                               uint64_t until_ns, uint64_t deadline_ns, bool *ret_missing,
                               tenrec_error *err);

/* A round where a wait cannot be canceled: it ends at a deadline of its own, and the keys are
 * checked afterwards. */
tenrec_status store_wait_then_check(struct tenrec_plugin_store *s, const char *const *keys,
                                    uint32_t n, uint64_t until_ns, uint64_t deadline_ns,
                                    bool *ret_missing, tenrec_error *err);

/* The address of the store of a plugin, "" if unknown. Lives as long as `s`. */
const char *store_at(const struct tenrec_store *s);

/* The options of the kinds of this library. A TCP store proves the secret of `security`, and fails
 * with EPERM if a side is refused or only one has a secret. */
struct store_setup {
    struct security *security; /* shared; NULL: none */
    uint32_t num_workers;      /* openers of a file, of which the last to leave removes it; 0: none
                                  does */
};

/* The kinds: in->options is a struct store_setup, and in->url what follows the "://". */
tenrec_init_store_fn store_tcp_init, store_file_init, store_memory_init;
void store_tcp_rest(struct tenrec_plugin_store *s); /* as store_rest; of any kind */

tenrec_status store_tcp_open(const char *host, uint16_t port, struct security *security,
                             uint64_t deadline_ns, struct tenrec_store **ret, tenrec_error *err);
tenrec_status store_file_open(const char *path, uint32_t num_workers, uint64_t deadline_ns,
                              struct tenrec_store **ret, tenrec_error *err);
tenrec_status store_memory_open(const char *name, struct tenrec_store **ret, tenrec_error *err);

/* Opens a URL of one of the kinds, or of a plugin: of `stores` (borrowed; NULL: those that
 * TENREC_CONFIG and the environment name), else the one with the name of the scheme. */
tenrec_status store_open_url(const char *url, struct security *security, struct stores *stores,
                             uint64_t deadline_ns, struct tenrec_store **ret, tenrec_error *err);

/* As the public functions, with a deadline. */
tenrec_status store_set(struct tenrec_store *s, const char *key, const void *data, size_t len,
                        uint64_t deadline_ns, tenrec_error *err);
/* Sets n keys; after an error some of them may be set. */
tenrec_status store_set_all(struct tenrec_store *s, const char *const *keys,
                            const struct store_value *values, size_t n, uint64_t deadline_ns,
                            tenrec_error *err);
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
/* The same for n keys. ret: n. */
tenrec_status store_read_all(struct tenrec_store *s, const char *const *keys, size_t n,
                             uint64_t deadline_ns, struct store_value *ret, tenrec_error *err);
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

/* A wait for keys in rounds, between which the waiter checks for other events. */

struct store_rounds {
    uint32_t first_ms, most_ms; /* a round is twice as long as the one before, up to the most */
    /* Called after each round, with the missing keys. An error ends the wait. */
    tenrec_status (*between)(void *arg, const bool *missing, tenrec_error *err);
    void *arg;
};

/* As store_get_all. The last round has the whole deadline, for a store
 * that is too slow for a short round. errors: also those of `between` */
tenrec_status store_get_rounds(struct tenrec_store *s, const char *const *keys, size_t n,
                               uint64_t deadline_ns, const struct store_rounds *how,
                               struct store_value *ret, bool *missing, tenrec_error *err);

/* The TCP store's server on a core loop. */

/* The key under which the server tells how many requests it has answered. No key of a group. */
#define STORE_REQUESTS_KEY "tenrec.requests"

/* Serves on `loop` (borrowed until the drop), or on one of its own for NULL.
 *
 * security: shared (counted); in a mode but none, clients prove themselves first. NULL: all are let
 * in */
tenrec_status store_server_open(struct loop *loop, const char *host, uint16_t port,
                                struct security *security, struct tenrec_store_server **ret,
                                uint16_t *ret_port, tenrec_error *err);

/* Accepts no new connection any more; open connections stay. Not from the loop's
 * thread. */
void store_server_stop_listening(struct tenrec_store_server *server);

/* How many requests it has answered. */
uint64_t store_server_requests(const struct tenrec_store_server *server);

#endif
