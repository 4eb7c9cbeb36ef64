/* SPDX-License-Identifier: Apache-2.0 */
/* send.h - messages on their way out. */
#ifndef UCX_SEND_H
#define UCX_SEND_H

#include "ucx.h"

/* A message to send, and its end. */
struct outgoing {
    struct outgoing *next;
    struct conn *conn;      /* a reference */
    struct tenrec_msg *msg; /* owned */
    struct tenrec_done done;
    struct head head;
    const void *data; /* data_owned, or the payload */
    unsigned char *data_owned;
    uint64_t data_len, bytes; /* bytes: as counted in queues */
    uint64_t charged;         /* to strangers: an answer to one of them */
    struct outgoing *prev_posted, *next_posted;
    bool is_posted;
    uint32_t left; /* operations of UCX that have not ended */
    ucs_status_t status;
    uint32_t n_parts;
    struct outgoing_part *part; /* owned */
    unsigned char wire[HEAD_LEN];
};

struct outgoing_part {
    uint32_t index; /* 0: the payload; else 1 + the tensor's */
    const void *data;
    uint64_t len;
    unsigned char wire[HEAD_LEN];
};

/* outgoing.c; outgoing_new takes `msg` on success. */
struct outgoing *outgoing_new(struct tenrec_msg *msg, struct tenrec_done done, tenrec_error *err);
void outgoing_free(struct outgoing *o);

/* send.c */
void send_message(struct tenrec_agent *self, tenrec_peer to, struct tenrec_msg *msg,
                  struct tenrec_done done);
/* The driver's. */
bool send_queued(struct ucx *u);   /* what other threads have queued */
void send_waiting(struct conn *c); /* what waits behind the window */
void send_hello(struct conn *c);
void send_taken(struct conn *c);
void send_bye(struct conn *c);
/* Bytes of a proof; copied. */
void send_proof(struct conn *c, const void *bytes, size_t len);
/* A message of the plugin itself. Takes it. */
void send_on(struct conn *c, struct tenrec_msg *msg);
void send_fail_waiting(struct conn *c);
void send_fail_queued(struct ucx *u);
void send_fail_posted(struct ucx *u); /* UCX has ended, and has not completed them */
bool send_complete(struct ucx *u);    /* completes the ended sends */

#endif
