/* handshakes.h - the incoming handshakes of an agent that are under way, the oldest first.
 *
 * A connection costs its caller nothing, and us a descriptor and memory. An honest caller sends
 * its hello at once; so when all places are taken, or those of one source, the oldest handshake
 * is evicted and the new one begins. Loop thread only. */
#ifndef TENSORPIPE_HANDSHAKES_H
#define TENSORPIPE_HANDSHAKES_H

#include <stdbool.h>
#include <stddef.h>

struct source;

#define HANDSHAKES_MAX 4096
#define HANDSHAKES_OF_SOURCE 1024

/* Part of a connection without hello, or of a pipe that is not established. */
struct handshake {
    struct handshake *next, **prev; /* prev NULL: not in the list */
    struct source *source;          /* owns; NULL: no memory for it */
    /* It is out of the list; ends it. */
    void (*evict)(struct handshake *h, const char *why);
};

struct handshakes {
    struct handshake *first, **last;
    unsigned n;
};

void handshakes_init(struct handshakes *all);
/* Evicts what must go for `h`; takes the reference to `source`. */
void handshakes_add(struct handshakes *all, struct handshake *h, struct source *source);
/* May be in the list, or not. */
void handshakes_remove(struct handshakes *all, struct handshake *h);
/* Returns false when there is none. */
bool handshakes_evict_oldest(struct handshakes *all, const char *why);

#endif
