/* SPDX-License-Identifier: Apache-2.0 */
/* store_sources.h - the addresses of a closed store's clients, and how many proofs each may make
 * the server compute. On the loop's thread; the time is the caller's.
 *
 * An address from which a client was let in has no limit, as long as one of its connections stands:
 * a stranger at the same address must not keep members out. This host has none: its processes can
 * use up our processors without a connection. */
#ifndef TENREC_STORE_STORE_SOURCES_H
#define TENREC_STORE_STORE_SOURCES_H

#include "core/base/siphash.h"

#include <stdbool.h>
#include <sys/socket.h>

/* Proofs of one IPv4 address, or IPv6 network of 64 bits, at once: as many as the server has places
 * for strangers. And those later in each second. */
#define STORE_PROOFS 4096
#define STORE_PROOFS_PER_S 32

struct store_source; /* counted */

struct store_sources { /* zeros: none */
    struct siphash_key key;
    struct store_source *list;
};

/* The source of a connection from that address. NULL, which has no limit: this host, another
 * family, or no memory. */
struct store_source *store_sources_get(struct store_sources *all, const struct sockaddr *from);
/* Frees the sources without connections whose proofs are worked off. Called periodically. */
void store_sources_expire(struct store_sources *all, uint64_t now_ns);
/* Frees all; no connection has one. */
void store_sources_finish(struct store_sources *all);

/* NULL is fine for all of these. */
/* Returns false if too many connections of the source have come and none was let in. */
bool store_source_may_prove(struct store_source *s, uint64_t now_ns);
/* A client has been let in. */
void store_source_admit(struct store_source *s);
void store_source_put(struct store_source *s);

#endif
