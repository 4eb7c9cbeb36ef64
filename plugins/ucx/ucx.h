/* SPDX-License-Identifier: Apache-2.0 */
/* ucx.h - an agent of this plugin and its peers.
 *
 * All of UCX's objects belong to the driver (drive.c): the agent's own thread, a thread that polls
 * or leads, or for a moment one that sends. Other threads queue their operations under `lock` and
 * wake the driver. The driver calls the host, `done` and `release` without the lock and outside of
 * UCX's callbacks; only msg_new and place, which call nothing back, are exempt. */
#ifndef UCX_UCX_H
#define UCX_UCX_H

#include "head.h"
#include "options.h"

#include "core/base/clock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <ucp/api/ucp.h>

enum {
    UCX_AM = 1,            /* id of the one handler of active messages */
    UCX_WINDOW = 64 << 20, /* bytes of requests under way that a callee has not delivered */
    UCX_STRANGERS = 1024,  /* connections that have not said their hello */
    UCX_HELLO_MS = 5000,   /* time limit for that */
    UCX_STOP_MS = 3000,    /* for the end of UCX's operations in shutdown */
    UCX_PROOF_MAX = 4096,  /* bytes of a proof in one message */
    UCX_TEXT = 128,
};

struct conn;
struct outgoing;

struct peer {
    tenrec_peer id;
    uint64_t incarnation;
    const char *name, *address; /* the core's, until shutdown */
    struct conn *conn;          /* NULL: connect on first use */
    bool left;                  /* no member any more */
    uint32_t telling; /* threads that report its loss; no send goes there until they have */
};

enum { UCX_BUCKETS = 256 };

/* How a driver waits: it spins always, never, or for a while if that paid off before. */
enum drive_wait { WAIT_BUSY, WAIT_ADAPTIVE, WAIT_SLEEP };

struct drive_spin {
    uint64_t since_ns; /* when it began; 0: it has not */
    int credit;        /* the last spins that found something, less the others */
    unsigned tries;
};

struct ucx {
    struct tenrec_agent *self;
    const struct tenrec_host *host;
    const struct ucx_options *opt;
    tenrec_peer me;
    uint64_t incarnation;
    char name[TENREC_NAME_MAX + 1];
    char address[UCX_TEXT];
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_listener_h listener;
    int event_fd;         /* of the worker, which owns it */
    int own_fd, guest_fd; /* wake the driver: the own thread, another one */
    int epoll_fd;         /* where the own thread sleeps: event_fd, own_fd */
    enum drive_wait how;
    const struct tenrec_proof_service *prover; /* NULL: an older core */
    bool proves;                               /* connections begin with a proof */
    bool warned;                               /* that UCX fell back to TCP. The driver's */
    bool uses;                                 /* counted among the contexts of this process */
    pthread_t thread;

    pthread_mutex_t lock;
    pthread_cond_t moved;
    bool serving;         /* from start to shutdown */
    atomic_bool stopping; /* changes under the lock */
    bool resumed;
    bool driven;          /* there is a driver, which runs or sleeps ... */
    pthread_t driver;     /* ... this thread */
    pthread_cond_t given; /* not driven any more: to the own thread, and to a guest that wants */
    bool own_waits;       /* for that */
    bool lent;            /* a guest has left and is expected back; the own thread naps */
    uint64_t visits;      /* of guests */
    uint32_t guests;      /* threads that poll or lead, or are about to: 0 or 1 */
    atomic_bool wanted;   /* by the guest, which waits for the driver; changes under the lock */
    int asleep_fd;        /* wakes the thread that must drain the queue; -1: none sleeps */
    struct peer **peer;   /* by id */
    uint32_t n_peers;
    struct conn **conn; /* by slot */
    uint32_t n_slots, n_conns;
    uint64_t last_serial;
    struct outgoing *out_first, **out_last;
    struct conn *detached; /* by disconnect: to be closed; linked by next_detached */
    uint64_t pending;      /* sends without a completion */
    uint64_t sent, received;
    atomic_uint_fast64_t proofs_refused; /* of connections that came in */
    atomic_uint_fast64_t strays;         /* messages that name a connection which they are not of */
    struct tenrec_account *account;      /* what callers that are no members make us hold */

    /* The driver's. */
    bool watched; /* event_fd, by the own thread */
    struct drive_spin own_spin, guest_spin;
    struct outgoing *ended_first, **ended_last;
    struct outgoing *posted; /* UCX has parts of them */
    struct conn *ready, *broken;
    struct conn *bucket[UCX_BUCKETS]; /* by endpoint */
    bool paused;
    uint32_t operations; /* of UCX, under way */
    uint32_t unknown;    /* connections without the other side's hello */
    uint32_t byes;       /* connections that await one */
};

/* context.c: the configuration of UCX. */
tenrec_status context_open(struct ucx *u, const char *host_address, tenrec_error *err);
void context_close(struct ucx *u);
/* Last of all: a thread that sends may still wake a driver that has ended. */
void context_close_descriptors(struct ucx *u);
/* Owned by the caller: for UCX's release. `loopback`: UCX may use lo only. */
tenrec_status context_config(const struct ucx_options *o, bool loopback, ucp_config_t **ret,
                             tenrec_error *err);
/* The same for all transports and devices, whatever the variables say. */
tenrec_status context_config_all(ucp_config_t **ret, tenrec_error *err);
tenrec_status context_init(const ucp_config_t *config, ucp_context_h *ret, tenrec_error *err);
bool context_is_loopback(const char *host);
/* Takes no connection any more. On the thread that shuts down, when progress_run has ended. */
void listener_close(struct ucx *u);
/* Fills `ret` from "ucx://ADDRESS:PORT"; its length, or 0 if it is malformed. */
size_t context_sockaddr(const char *address, void *ret);
/* Adds to `why` that no process listens at the address: UCX reports only that it did not connect.
 */
void context_check_refused(const char *address, tenrec_error *why);

/* receive.c */
tenrec_status receive_open(struct ucx *u, tenrec_error *err);
/* Delivers the messages that waited for an earlier one. */
void receive_held(struct conn *c);
void receive_drop_all(struct conn *c);

/* budget.c: charges `n` bytes to strangers, and adds them to *charged, if the connection is of one.
 * errors   EAGAIN: they hold too much */
tenrec_status budget_take(const struct conn *c, uint64_t n, uint64_t *charged, tenrec_error *err);
tenrec_status budget_take_locked(const struct conn *c, uint64_t n, uint64_t *charged,
                                 tenrec_error *err);
/* Gives *charged back, and makes it 0. */
void budget_give(struct ucx *u, uint64_t *charged);
/* The message takes *charged, until its release. */
void budget_carry(struct ucx *u, struct tenrec_msg *msg, uint64_t *charged);

/* deliver.c: returns true if there was something. */
bool deliver_ready(struct ucx *u);

/* progress.c: what a driver does. */
/* Returns true if something happened: there may be more. */
bool progress_step(struct ucx *u);
/* Posts what is queued, and completes what has ended at once. */
void progress_sends(struct ucx *u);
void progress_end_all(struct ucx *u);

/* drive.c */
void *drive_run(void *agent); /* the own thread */
/* Returns the descriptor to write after the unlock to have the driver drain the queue, -1 if none
 * is needed. With the lock. */
int drive_waker(struct ucx *u);
void drive_wake(int fd);
/* Returns true if the calling thread has become the driver: no thread drove, and the own one
 * sleeps. With the lock. */
bool drive_try(struct ucx *u);
void drive_leave(struct ucx *u);
/* Returns true if this thread drives. With the lock. */
bool drive_is_mine(const struct ucx *u);
/* The calling thread drives until the wait is over. errors: EUNSUPPORTED, another one does */
tenrec_status drive_as_guest(struct ucx *u, const struct tenrec_wait *wait);

#endif
