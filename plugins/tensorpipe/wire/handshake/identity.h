/* SPDX-License-Identifier: Apache-2.0 */
/* identity.h - the identity of a Tenrec peer in the handshake.
 *
 * The name in a hello is free text. A Tenrec peer puts an entry of its own,
 * named "tenrec", beside the transports of its Brochure, and answers one with
 * an entry among the channels of its BrochureAnswer; other peers skip both.
 *
 *     tenrec:<version>:<rank>:<incarnation, hex>:<capabilities, hex>
 *         [:<proof, hex>[:<max_message, hex>:<max_object, hex>[:...]]]
 */
#ifndef TENSORPIPE_IDENTITY_H
#define TENSORPIPE_IDENTITY_H

#include "wire/nop.h"

#include <stddef.h>
#include <stdint.h>
#include <tenrec/types.h>

#define IDENTITY_ENTRY "tenrec" /* its key in both maps */
#define IDENTITY_VERSION 1      /* grows when capabilities alone cannot say a change */
#define IDENTITY_MAX 128        /* bytes of the text with its NUL */

enum identity_capability {
    IDENTITY_ALL_DTYPES = 1u << 0,      /* reads dtypes that torch cannot carry */
    IDENTITY_OWN_MESSAGES = 1u << 1,    /* understands message types 0x180..0x1ff */
    IDENTITY_MAPS = 1u << 2,            /* maps shared memory that its peer sends (shm_handoff.h) */
    IDENTITY_SHORT_LISTS = 1u << 3,     /* reads shortlist.h */
    IDENTITY_SHARED_STORAGES = 1u << 4, /* reads lists in which tensors share storages */
    IDENTITY_NAMES_TARGETS = 1u << 5,   /* names the device of each tensor, and opens no reply
                                           connection that would carry nothing */
    IDENTITY_BRIEF_MESSAGES = 1u << 6,  /* reads brief.h */
    IDENTITY_DEFERS = 1u << 7,          /* opens connections for tensors with the first tensor that
                                           needs them (pipe/pipe_deferred.h) */
    IDENTITY_PARTS = 1u << 8,           /* lets a caller close an idle pipe (pipe/pipe_idle.h) */
};

struct identity {
    uint32_t version;
    tenrec_peer rank; /* TENREC_ANONYMOUS: no member */
    uint64_t incarnation;
    uint64_t capabilities; /* enum identity_capability; unknown bits are others' */
    uint64_t proof;        /* proof.h; 0: none */
    /* What it reads at most. 0: it does not say, and has the defaults. */
    uint64_t max_message, max_object;
};

void identity_write(char buf[IDENTITY_MAX], const struct identity *identity);

/* Fields after the known ones are a later version's and are skipped.
 *
 * errors   EPROTOCOL
 */
tenrec_status identity_read(struct nop_bytes text, struct identity *ret, tenrec_error *err);

struct brochure;
struct answer;

/* ret->version is 0 when the peer brought no identity: it is not Tenrec.
 *
 * errors   EPROTOCOL (malformed identity)
 */
tenrec_status identity_of_client(const struct brochure *b, struct identity *ret, tenrec_error *err);
tenrec_status identity_of_listener(const struct answer *a, struct identity *ret, tenrec_error *err);

/* hello.c: the first object on every connection to a listener. */

enum hello_kind {
    HELLO_SPONTANEOUS, /* a new pipe; `name` is what the caller calls itself */
    HELLO_REQUESTED,   /* the connection that was asked for with `id` */
    HELLO_EMPTY,       /* no alternative at all: close the connection */
};

struct hello {
    enum hello_kind kind;
    struct nop_bytes name; /* a view of the frame, unverified, may be empty */
    uint64_t id;           /* 0 but for HELLO_REQUESTED */
};

#define HELLO_MAX(name_len) ((size_t)(name_len) + 16) /* bytes that a hello takes at most */

/* Both return the length of the object; beyond `cap` nothing usable was written. */
size_t hello_write_spontaneous(void *buf, size_t cap, struct nop_bytes name);
size_t hello_write_requested(void *buf, size_t cap, uint64_t id);

/* errors   EPROTOCOL */
tenrec_status hello_read(const void *frame, size_t len, struct hello *ret, tenrec_error *err);

/* proof.c: how a Tenrec peer proves to another that it is a member, without revealing its token.
 *
 * Each life of a member has a token of 64 random bits in the store. A proof is a keyed hash
 * (SipHash-2-4) of which the key is both tokens: only a process that knows both makes it, and
 * only the one peer that it is meant for can use it. A process that sits at the address of a
 * dead member learns nothing that it could show to a third one. */

/* One life of a member. */
struct proof_life {
    tenrec_peer rank;
    uint64_t incarnation, token;
};

enum proof_role { PROOF_OF_CALLER = 1, PROOF_OF_LISTENER = 2 };

/* The proof of `by` for `to`; never 0. */
uint64_t proof_make(const struct proof_life *by, const struct proof_life *to, enum proof_role role);

/* SipHash-2-4 of whole words of 64 bits, little endian. */
uint64_t proof_hash(uint64_t k0, uint64_t k1, const uint64_t *word, size_t n);

#endif
