/* SPDX-License-Identifier: Apache-2.0 */
/* faulty.h - one faulty agent; private to this plugin. */
#ifndef FAULTY_FAULTY_H
#define FAULTY_FAULTY_H

#include "rule.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <tenrec/agent.h>

/* queue.c: messages that are passed on later: held by the core until they are due, or until
 * another message overtakes them. */

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

struct faulty {
    struct tenrec_agent *self;
    tenrec_peer me;
    const char *backend; /* of the core, lives as long */
    bool can_grow;       /* the group is dynamic */

    _Atomic(struct ruleset *) rules; /* in force; owns */
    pthread_mutex_t lock;            /* guards the rules' state, their change, and all below */
    struct tenrec_member *member;    /* known now; owns */
    size_t n_members;
    struct queue queue;
};

/* A message hit by a rule. */
struct hit {
    struct rule *rule;
    int64_t number; /* among the hits that are counted together; -1: out of memory */
    bool first;     /* of this rule */
    uint64_t draw;  /* a random number */
};

/* Sends the message to the next agent, or delivers it. Takes the message, as the next two. */
void transit_pass(const struct faulty *f, const struct transit *t);
/* Fails the send of a message: "faulty: `before` this CALL`after`". */
void transit_fail(const struct transit *t, tenrec_status code, const char *before,
                  const char *after);

/* Applies the action of the rule to the message. Returns true if the next agent has received a
 * message, which may have overtaken a held message. */
bool inject(struct faulty *f, const struct hit *hit, const struct transit *t);

/* Passes on the messages that are held until another message to or from `peer`
 * has overtaken them. */
void inject_passed(struct faulty *f, struct ruleset *rules, bool incoming, tenrec_peer peer);

/* copy.c: copies of messages; the bytes of the original are never written to. */

/* Makes `n` messages to send that share the bytes of `msg`; `own_payload`: each with a payload of
 * its own. Takes `msg` on success; returns false when out of memory. */
bool copy_to_send(struct tenrec_msg *msg, bool own_payload, unsigned n, struct tenrec_msg *ret[]);

/* Copies a message received from `from`, tensors included, into memory of the
 * host. Returns NULL when out of memory, or when a tensor is not in CPU memory. */
struct tenrec_msg *copy_received(struct tenrec_agent *self, tenrec_peer from,
                                 const struct tenrec_msg *msg);

#endif
