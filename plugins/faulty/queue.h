/* SPDX-License-Identifier: Apache-2.0 */
/* queue.h - messages whose time has not come. */
#ifndef FAULTY_QUEUE_H
#define FAULTY_QUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <tenrec/agent.h>

struct faulty;
struct rule;

/* One message; outgoing with its sender's `done`. */
struct held {
    struct held *prev, *next; /* in the order of their times */
    struct faulty *faulty;
    struct rule *rule; /* which holds it */
    uint64_t due_ns;
    bool incoming;
    bool gone; /* taken: only its timer is left, which frees it */
    tenrec_peer peer;
    struct tenrec_msg *msg;
    struct tenrec_done done;
};

struct queue {
    struct held *first, *last;
    uint64_t out, in;      /* held now: to be sent, to be delivered */
    uint64_t dropped;      /* their deadline passed meanwhile */
    pthread_cond_t nobody; /* out became 0 */
};

void queue_init(struct queue *q);
void queue_finish(struct queue *q); /* nothing is held any more */

/* The monotonic clock. */
uint64_t queue_now_ns(void);

/* A block for queue_add; NULL: out of memory. */
struct held *queue_new(struct faulty *f, struct rule *r, bool incoming, tenrec_peer peer,
                       struct tenrec_msg *msg, struct tenrec_done done);

/* Puts it where its due_ns belongs. With the agent's lock. */
void queue_add(struct queue *q, struct held *h);

/* Begins its time; takes `h`. Without the lock, after queue_add. When it fails
 * (ENOMEM, ESHUTDOWN) msg and done are the caller's again. */
tenrec_status queue_arm(struct held *h);

/* Takes one out that shall go now, with the lock; its timer may free `h` from
 * then on. queue_pass lets what it returned go, without the lock. */
struct held queue_take(struct queue *q, struct held *h);
void queue_pass(struct held *taken);

/* Waits until nothing is held that is to be sent. errors: ETIMEDOUT */
tenrec_status queue_drain(struct faulty *f, uint32_t ms, tenrec_error *err);

#endif
