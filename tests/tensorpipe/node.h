/* SPDX-License-Identifier: Apache-2.0 */
/* node.h - tensorpipe agents in a test, with a host that the test fills. */
#ifndef TENSORPIPE_TEST_NODE_H
#define TENSORPIPE_TEST_NODE_H

#include "../testing.h"
#include "options.h"

#include <pthread.h>
#include <stdatomic.h>

#define NODE_CALLS 256 /* calls that may be open at once */
#define NODE_LIMIT_NS UINT64_C(20000000000)

/* One request and what became of it. */
struct call {
    _Atomic uint32_t done;
    int wake_fd; /* -1: no thread waits by poll */
    int64_t id;
    tenrec_status status;
    tenrec_error err;
    struct tenrec_msg *answer; /* owns */
    void *into;                /* where a tensor of the answer goes; NULL: new memory */
    void (*then)(struct call *c);
    void *arg;
};

enum { NODES_MAX = 16 };

struct node {
    struct tenrec_agent agent;
    struct tenrec_host host;
    struct tp_options options;
    union tenrec_option_value transport[2], channel[2];
    struct tenrec_member member;
    struct tenrec_member all[NODES_MAX]; /* that it is started with */
    char name[32], address[96];
    bool started;
    bool dynamic; /* its group; before node_open */

    /* Handles requests. NULL: requests are echoed. */
    void (*_Atomic on_request)(struct node *n, tenrec_peer from, struct tenrec_msg *msg);
    atomic_bool refuse_place, refuse_requests;
    atomic_bool needs; /* idle connections to and from its peers */
    void *arg;

    pthread_mutex_t lock;
    struct call *call[NODE_CALLS]; /* by id */
    atomic_int_fast64_t next_id;
    atomic_uint lost, callers_lost, requests, stray_answers, told;
    tenrec_error lost_why;
    _Atomic tenrec_peer last_from;
};

/* Default options; change them before node_open. TENREC_TEST_TRANSPORT names
 * the preferred transport. */
void node_init(struct node *n, tenrec_peer id);
void node_open(struct node *n);
/* The same, where the options may be refused; to be destroyed by the test then. */
tenrec_status node_try_open(struct node *n, tenrec_error *err);
/* All meet all, NODES_MAX at most. */
void nodes_start(struct node *n, size_t count);
void node_shutdown(struct node *n);
void node_close(struct node *n);

/* For one on this host: shm and uv, cma and basic; before node_open. */
void node_share_memory(struct node *n);
/* Opens, starts and names `count` of them; `progress` as in the options. */
void group_open(struct node *n, size_t count, const char *progress);
void group_close(struct node *n, size_t count);

/* A message of the core's kind: payload copied, `n` tensors of `bytes` bytes
 * each, which point into `data`. */
struct tenrec_msg *message_of(int32_t type, const void *payload, size_t len, uint32_t n, void *data,
                              uint64_t bytes);

/* A request without tensors. */
struct tenrec_msg *request(const char *text);
/* For on_request: no answer ever. */
void keep_request(struct node *n, tenrec_peer from, struct tenrec_msg *msg);

/* Sends `msg` to `to` as a request; c is done when the answer or an error came. */
void call_start(struct node *n, struct call *c, tenrec_peer to, struct tenrec_msg *msg);
/* Waits as the core does: polls, and sleeps when there is nothing to poll. */
void call_wait(struct node *n, struct call *c, tenrec_peer to);
void call_finish(struct call *c); /* releases the answer */
/* All three, with MAY_WAIT as in a blocking call. */
tenrec_status call_sync(struct node *n, tenrec_peer to, struct tenrec_msg *msg, struct call *c);
/* Waits for the end of `c`. */
void assert_call_fails(struct call *c, tenrec_status code);
/* One byte there and back. */
void assert_ping(struct node *n, tenrec_peer to);

void answer(struct node *n, struct tenrec_msg *request, struct tenrec_msg *response);
void echo_request(struct node *n, tenrec_peer from, struct tenrec_msg *msg);

/* One of its pipes reads no requests, because its queue is full, and can write no answers. */
bool node_is_clogged(struct node *n);

/* The value of a counter of debug_info; fails the test when it is missing. */
uint64_t node_counter(struct node *n, const char *key);

uint64_t clock_ns(void);
void nap(void);

#endif
