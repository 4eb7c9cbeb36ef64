/* SPDX-License-Identifier: Apache-2.0 */
/* store_clients.h - two clients of the store under test, which share keys that no other case has.
 */
#ifndef TENREC_TOOLS_CONFORMANCE_STORE_CLIENTS_H
#define TENREC_TOOLS_CONFORMANCE_STORE_CLIENTS_H

#include "conformance/case.h"
#include "group/store/store.h"

#include <stdbool.h>
#include <stdint.h>
#include <tenrec/store_plugin.h>

/* Opened apart from each other, before the case begins. Each puts the prefix of the case before
 * its keys. */
extern struct tenrec_store *one, *two;

/* In a process of its own without any store so far: opens `one` alone, with the same prefix. */
void clients_join(void);
void clients_leave(void);

/* ---- for the cases ---- */

/* As clients_run opens them; the caller closes it. */
struct tenrec_store *clients_open(void);
/* The same by another URL of the same store. */
tenrec_status clients_open_url(const char *url, uint64_t deadline_ns, struct tenrec_store **ret,
                               tenrec_error *err);
/* Closes *s (one and two are NULL then), and demands that this takes a second at most. */
void clients_close(struct tenrec_store **s);

const char *clients_url(void);
/* The plugin that opens clients_url(). Returns false for a kind of the core. */
bool clients_choice(struct stores_choice *ret);
/* "/PREFIX/key", for an operation of the plugin itself; the caller frees it. */
char *clients_key(const char *key);
/* The key is removed when the case ends well. */
void clients_note(const char *key);

/* Ends the case as not offered if the store lacks one of them: it cannot do `what`. */
void clients_need(uint32_t lacks, const char *what);
uint32_t clients_lack(void); /* enum tenrec_store_lacks */

/* A deadline that only a broken store reaches. */
uint64_t soon(void);

/* Demands that it is stored. */
void put(struct tenrec_store *s, const char *key, const char *value);
void put_bytes(struct tenrec_store *s, const char *key, const void *data, size_t len);
/* Demands that the key has that value. */
void holds(struct tenrec_store *s, const char *key, const char *value);
void holds_bytes(struct tenrec_store *s, const char *key, const void *data, size_t len);
bool has(struct tenrec_store *s, const char *key);
/* Gets with a deadline so early that a busy server may answer too late, and asks such a server
 * again. */
tenrec_status get_by(struct tenrec_store *s, const char *const *keys, size_t n, unsigned limit_ms,
                     struct store_value *ret, bool *ret_missing, tenrec_error *err);
/* The server had no time to answer, and may be asked again before `until_ns`. */
bool server_was_late(tenrec_status st, uint64_t until_ns);
int64_t add(struct tenrec_store *s, const char *key, int64_t delta);

/* A client of the store in a second process. Each order is demanded to succeed. */

/* Starts the process, before this one opens the store. */
void far_start(void);
void far_end(void);

void far_set(const char *key, const char *value);
/* Demands that the key has that value over there. */
void far_holds(const char *key, const char *value);
/* The same in two steps: between them it may wait for the key. */
void far_holds_begin(const char *key, const char *value);
void far_holds_end(void);

/* The operations of the plugin itself, without the core between. */

/* A store as the core opens it, without the core's checks. */
struct raw {
    struct tenrec_plugin_store store;
    const struct tenrec_store_ops *ops; /* the same */
};

/* Ends the case as not offered for a store that is no plugin. */
tenrec_status raw_open(struct raw *ret, const char *url, uint64_t deadline_ns, tenrec_error *err);
/* Opens clients_url(). */
void raw_open_server(struct raw *ret);
void raw_close(struct raw *r);
/* All that the stores of raw_open logged so far; the caller frees it. */
char *raw_log(void);

/* relay.c: a port of this host between a client and a server: its owner is the network that fails.
 */

struct relay;

/* Takes a port of 127.0.0.1, on which nothing listens yet: it refuses connections.
 *
 * to    borrowed: the numeric address of the server, "10.0.0.3:6379", "[fd00::1]:6379" */
struct relay *relay_new(const char *to);
void relay_drop(struct relay *r);
uint16_t relay_port(const struct relay *r);

/* Lets clients connect, and carries their bytes. */
void relay_listen(struct relay *r);
/* Keeps the connections, and carries nothing more. */
void relay_freeze(struct relay *r);
/* Breaks all connections, and refuses new ones until relay_listen. */
void relay_cut(struct relay *r);

/* Splits a numeric address. Returns false if it is none: an address with a port from 1 to 65535. */
struct sockaddr_storage;
bool relay_address(const char *text, struct sockaddr_storage *ret, unsigned *ret_len);

#endif
