/* SPDX-License-Identifier: Apache-2.0 */
/* fake_wire.h - connections of an agent that no kernel carries: their bytes, their ends,
 * the room for more and the moment of each event are the target's.
 *
 * The program that links this brings its own table of transports: `uv`, between hosts,
 * and `tenrec_ring`, whose connections know the peer's process and can pass descriptors.
 * Everything runs on one thread, which leads the agent's loop, so that an input does the
 * same each time. The clock is the target's, too. */
#ifndef TENREC_TESTS_FUZZ_FAKE_WIRE_H
#define TENREC_TESTS_FUZZ_FAKE_WIRE_H

#include "transport/conn.h"

struct agent;

#define FAKE_CONNS 96
#define FAKE_OUT_MAX 16384 /* bytes of what the agent wrote that are kept */
#define FAKE_FAR "uv"
#define FAKE_NEAR "tenrec_ring"

struct fake_conn {
    struct conn *conn; /* NULL: the agent has freed it, or never had it */
    bool near, dialled;
    bool connected; /* the agent asked how a dialled one ended */
    int refused;    /* dialled: with this errno it ends; 0: it stands; EINPROGRESS: neither */

    unsigned char *in; /* owns; bytes [at, granted) can be read now, [granted, len) later */
    size_t len, cap, at, granted;
    bool ended; /* behind these bytes; `error` says how, 0: in an orderly way */
    int error;

    unsigned char *out; /* owns; dialled: the first bytes that the agent wrote */
    size_t out_len;
    size_t room; /* bytes that may be written now */

    enum conn_hears hears;
    bool gone;     /* dropped: hears no more */
    bool starved;  /* a write found no room */
    uint32_t news; /* undelivered edges */
    int fd;        /* the peer's end of a socket for descriptors; -1 */
};

struct fake_wire {
    struct fake_conn conn[FAKE_CONNS];
    unsigned n;
    int refuses;  /* the errno with which connections that the agent dials end */
    bool calling; /* one comes in */
    bool near_calling;
    uint64_t now_ns;  /* of all clocks */
    uint64_t written; /* bytes, by peers */
    /* A thread that polls is about to read; NULL: no thread polls. */
    void (*poller_reads)(void *poller);
    void *poller;
};
extern struct fake_wire fake_wire;

void fake_wire_init(void);
/* Frees all memory; the agent is gone. */
void fake_wire_finish(void);

/* A connection comes in. NULL: the agent took none. */
struct fake_conn *fake_wire_call(struct agent *a, bool near);
struct fake_conn *fake_wire_of(const struct conn *c);

/* The peer writes; of all its bytes that were not read yet the agent sees `granted` more, 0:
 * all. */
void fake_conn_write(struct fake_conn *c, const void *data, size_t len, size_t granted);
/* The peer ends the connection, with `error` or in an orderly way. */
void fake_conn_end(struct fake_conn *c, int error);
/* There is room for so many bytes from now on. */
void fake_conn_allow(struct fake_conn *c, size_t room);
/* Gives a near connection a socket over which descriptors can be passed. */
void fake_conn_open_socket(struct fake_conn *c);

/* Delivers all pending edges to the agent. Returns true if there was one. */
bool fake_wire_tell(void);

#endif
