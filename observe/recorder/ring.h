/* SPDX-License-Identifier: Apache-2.0 */
/* ring.h - the latest events of the process.
 *
 * Any number of threads write and read at the same time, and none waits. An entry is one cache line
 * with a check word over its contents and the number of its event, so a reader drops an entry that
 * is being written, or that two writers have mixed as one of them was a whole round late. A
 * sequence number in place of the check word would need a second atomic operation per event. */
#ifndef TENREC_RECORDER_RING_H
#define TENREC_RECORDER_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tenrec/error.h>
#include <tenrec/types.h>

enum { RING_SIZE = 4096, RING_TEXT = 24 };

enum ring_kind {
    RING_CALL,    /* of ours, which has ended */
    RING_SERVE,   /* of another worker, likewise, on the thread that served it */
    RING_LATER,   /* the same, but answered after its function had returned */
    RING_INSTANT, /* from here on: enum call_note */
};

struct ring_event {
    uint64_t time_ns;     /* CLOCK_MONOTONIC; of a call: its begin */
    int64_t id;           /* of the call; 0: none */
    uint32_t thread;      /* its id in the system */
    tenrec_peer peer;     /* the other side; < 0: none, or outside the group */
    float took_ns;        /* by a call: exact up to 16 ms, then to seven digits */
    uint16_t worker;      /* its start, modulo 2^16 (tenrec_worker.start) */
    uint8_t kind;         /* enum ring_kind */
    int8_t status;        /* tenrec_status */
    char text[RING_TEXT]; /* function or name; zero-padded, no zero behind RING_TEXT bytes */
};

enum { RING_WORDS = sizeof(struct ring_event) / sizeof(uint64_t) };
_Static_assert(RING_WORDS == 7, "an event and its check word are one cache line");

/* A place for an event, which a reader may find half written. */
struct ring_slot {
    _Atomic uint64_t word[RING_WORDS + 1];
};

void ring_slot_write(struct ring_slot *s, uint64_t number, const struct ring_event *e);
/* Returns false if the slot does not hold the whole event of that number. */
bool ring_slot_read(struct ring_slot *s, uint64_t number, struct ring_event *ret);

/* Writes the text, cut to its end if it is longer: names of one program differ there. */
void ring_set_text(struct ring_event *e, const char *text);
/* The text as a string. */
static inline const char *ring_text(const struct ring_event *e, char buf[static RING_TEXT + 1])
{
    for (int i = 0; i < RING_TEXT; i++)
        buf[i] = e->text[i];
    buf[RING_TEXT] = '\0';
    return buf;
}

/* In the child of a fork: empties the ring, for the events are the parent's. */
void ring_forked(void);

/* Returns the number of the event, from 1. */
uint64_t ring_add(const struct ring_event *e);

struct ring_read {
    uint64_t number;
    struct ring_event event;
};

/* Copies the events that the ring holds, in the order of their numbers.
 *
 * ret      room for RING_SIZE
 * ret_lost of those, not copied, as they were being written; older ones are not counted */
size_t ring_read(struct ring_read *ret, size_t *ret_lost);

/* ---- which calls of a thread the ring keeps: where short ones follow each other at once, one in
 * THIN_KEEPS, so that the ring reaches back further than some milliseconds, and a call costs less.
 * All others are kept: the failed, the long, and the first after a pause --------------------------
 */

enum { THIN_KEEPS = 8, THIN_SHORT_NS = 20000, THIN_PAUSE_NS = 20000 };

/* Of a thread, and of one side of calls. */
struct thin {
    uint64_t last_ns; /* the end of the call before */
    uint32_t left;    /* calls that are left out before the next */
};

/* A call has ended. */
static inline bool thin_keeps(struct thin *t, uint64_t begun_ns, uint64_t ended_ns,
                              tenrec_status status)
{
    const bool at_once = begun_ns < t->last_ns + THIN_PAUSE_NS;
    const bool is_short = ended_ns < begun_ns + THIN_SHORT_NS;

    t->last_ns = ended_ns;
    if (at_once && is_short && status == TENREC_OK && t->left > 0) {
        t->left--;
        return false;
    }
    t->left = THIN_KEEPS - 1;
    return true;
}

#endif
