/* SPDX-License-Identifier: Apache-2.0 */
/* queue.h - messages that are passed on later: held by the core until they are due, or until
 * another message overtakes them. */
#ifndef FAULTY_QUEUE_H
#define FAULTY_QUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <tenrec/agent.h>

struct faulty;
struct rule;

/* A message on its way through the agent, with its sender's `done`, or a received message. */
struct transit {
    bool incoming;
    tenrec_peer peer;
    struct tenrec_msg *msg;
    struct tenrec_done done; /* of a received message empty */
};

/* A message that is passed on later. */
struct held {
    struct faulty *faulty;
    struct rule *rule; /* that holds the message */
    uint64_t due_ns;
    bool gone; /* passed on: only the core's call is left, which frees this */
    struct transit on;
};

struct queue {
    uint64_t out, in;    /* held now: to send, to deliver */
    uint64_t dropped;    /* with an expired deadline */
    pthread_cond_t idle; /* out became 0 */
};

void queue_init(struct queue *q);
void queue_finish(struct queue *q); /* the queue is empty */

/* Makes an entry for queue_add; NULL when out of memory. */
struct held *queue_new(struct faulty *f, struct rule *r, const struct transit *on);

/* Counts `h` in. With the agent's lock. */
void queue_add(struct queue *q, struct held *h);

/* Gives `h` to the core until its due_ns; takes `h`. Without the lock, after queue_add. On
 * failure (ENOMEM, ESHUTDOWN) the caller owns the message again. */
tenrec_status queue_hold(struct held *h);

/* queue_take removes `h`, with the lock, and returns a copy: the core's call may
 * free `h` from then on. queue_pass sends or delivers the copy, without the lock. */
struct held queue_take(struct held *h);
void queue_pass(struct held *taken);

/* Waits until no outgoing message is held. errors: ETIMEDOUT */
tenrec_status queue_drain(struct faulty *f, uint32_t ms, tenrec_error *err);

#endif
