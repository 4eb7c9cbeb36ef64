/* SPDX-License-Identifier: Apache-2.0 */
/* hello.h - the first object on every connection to a listener. */
#ifndef TENSORPIPE_HELLO_H
#define TENSORPIPE_HELLO_H

#include "wire/nop.h"

enum hello_kind {
    HELLO_SPONTANEOUS, /* a new pipe; `name` is what the caller calls itself */
    HELLO_REQUESTED,   /* the connection that was asked for with `id` */
    HELLO_EMPTY,       /* no alternative at all: close the connection */
};

struct hello {
    enum hello_kind kind;
    struct nop_bytes name; /* a view of the frame, unverified, may be empty */
    uint64_t id; /* 0 but for HELLO_REQUESTED */
};

#define HELLO_MAX(name_len) ((size_t)(name_len) + 16) /* bytes that a hello takes at most */

/* Both return the length of the object; beyond `cap` nothing usable was written. */
size_t hello_write_spontaneous(void *buf, size_t cap, struct nop_bytes name);
size_t hello_write_requested(void *buf, size_t cap, uint64_t id);

/* errors   EPROTOCOL */
tenrec_status hello_read(const void *frame, size_t len, struct hello *ret, tenrec_error *err);

#endif
