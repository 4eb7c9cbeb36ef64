/* SPDX-License-Identifier: Apache-2.0 */
/* handshakes.h - the incoming handshakes of an agent that are under way, the oldest first.
 *
 * A connection costs its caller nothing, and us a descriptor and memory. When all places are taken,
 * or those of one source, the oldest handshake is evicted and the new one begins. A member's caller
 * may send a call as soon as it has opened its connections, before this side has read them: an
 * eviction then loses the call. So pipes of members, connections from where a member opens a pipe,
 * connections that have proved to be of the group, and those of processes of this user go last.
 * Loop thread only. */
#ifndef TENSORPIPE_HANDSHAKES_H
#define TENSORPIPE_HANDSHAKES_H

#include <stdbool.h>
#include <tenrec/agent.h>

#define HANDSHAKES_MAX 4096
#define HANDSHAKES_OF_SOURCE 1024

enum handshake_kind { HANDSHAKE_CONN, HANDSHAKE_PIPE, HANDSHAKE_MEMBER };

/* Part of a connection without hello, or of a pipe that is not established. */
struct handshake {
    enum handshake_kind kind;
    bool local;                     /* of a process of this host and user, or of the group */
    struct handshake *next, **prev; /* prev NULL: not in the list */
    struct tenrec_account *source;  /* owns; NULL: no memory for it */
    /* It is out of the list; ends it. */
    void (*evict)(struct handshake *h, const char *why);
};

struct handshakes {
    const struct tenrec_budget *budget;
    struct handshake *first, **last;
    unsigned n;
};

void handshakes_init(struct handshakes *all, const struct tenrec_budget *budget);
/* Evicts what must go for `h`; takes the reference to `source`. */
void handshakes_add(struct handshakes *all, struct handshake *h, struct tenrec_account *source);
/* The pipe's caller has shown to be a member. */
void handshake_trust(struct handshake *h);
/* Returns true while its source opens a pipe: the handshake may be a connection of that pipe. */
bool handshake_is_awaited(const struct handshake *h);
/* `h` need not be in the list. */
void handshakes_remove(struct handshakes *all, struct handshake *h);
/* Evicts the oldest handshake that may go first, or the oldest of all. Returns false if the list is
 * empty.
 */
bool handshakes_evict_oldest(struct handshakes *all, const char *why);

#endif
