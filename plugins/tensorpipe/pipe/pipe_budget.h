/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_budget.h - memory that an unauthenticated caller makes this process hold. */
#ifndef TENSORPIPE_PIPE_BUDGET_H
#define TENSORPIPE_PIPE_BUDGET_H

#include "transport/conn.h"

struct pipe;
struct tenrec_account;

/* Of an incoming pipe; beside these its source is charged for the queue. */
struct pipe_budget {
    bool stranger;    /* the caller is no member so far; changes under the pipe's lock */
    atomic_bool over; /* the source holds too much; set under lock */
    struct tenrec_account *source; /* of where the caller is; owns a reference */
    uint64_t announced; /* charged for the message that is being read; the reader's ... */
    uint64_t held;      /* ... and for the lists and the buffer that messages are read with */
};

/* A reference to the source of an accepted connection. NULL: out of memory. */
struct tenrec_account *conn_source(const struct conn *c);
/* Returns false if memory is exhausted. */
bool pipe_begin_budget(struct pipe *p, const struct conn *c);
void pipe_end_budget(struct pipe *p);
/* The caller has shown to be a member: the source is charged no more. By the reader. */
void pipe_release_budget(struct pipe *p);
/* As pipe_queued_add, which calls it. */
void pipe_charge_source(struct pipe *p, uint64_t n);
void pipe_fail_over_budget(struct pipe *p);
/* Returns OK while `n` bytes more may be held. errors: EAGAIN */
tenrec_status pipe_budget_has(struct pipe *p, uint64_t n, tenrec_error *err);
/* A message that is being read will take `n` bytes, until pipe_announce_carry. errors: EAGAIN */
tenrec_status pipe_announced(struct pipe *p, uint64_t n, tenrec_error *err);
/* `msg` takes the charge; NULL: no message does. */
void pipe_announce_carry(struct pipe *p, struct tenrec_msg *msg);
/* Charges the lists and the buffer that messages are read with, once they are large: as large
 * as they are now. By the reader. errors: EAGAIN */
tenrec_status pipe_charge_reading(struct pipe *p, tenrec_error *err);

#endif
