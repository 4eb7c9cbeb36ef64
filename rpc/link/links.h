/* SPDX-License-Identifier: Apache-2.0 */
/* links.h - the table of links. */
#ifndef TENREC_LINK_LINKS_H
#define TENREC_LINK_LINKS_H

#include "rpc/future/worker.h"
#include "rpc/link/link_record.h"

#include <pthread.h>
#include <tenrec/link.h>

/* Lives until the program has dropped it and the chain, whose agents borrow the name and the
 * address, is closed. */
struct tenrec_link {
    struct link_table *table; /* owns a share */
    struct tenrec_link *next; /* in the table; while the chain is open */
    struct link_record record;
    tenrec_peer id; /* -1: the link has ended */
    size_t holders; /* of the program; 0: the peer alone has connected */
    bool ending;    /* by one thread */
    bool listed;
};

/* Of a worker. Shared by it and by its links, which the program may drop later. */
struct link_table {
    pthread_mutex_t lock; /* guards all fields here, and those of the links */
    size_t refs;
    struct tenrec_worker *worker; /* NULL: it does not run */
    struct tenrec_link *first;    /* the latest first; also those that have ended */
    tenrec_peer last;             /* the id that was given last */
};

static inline struct link_table **link_table_of(const struct tenrec_worker *w)
{
    return w->service[SERVICE_LINK];
}

/* Adds the worker of a record (taken on success), or finds its link. `hold`: for the program. The
 * worker is entered, no lock held.
 *
 * ret_first  the program did not hold it before
 * errors     as tenrec_link_connect */
tenrec_status link_add(struct tenrec_worker *w, struct link_record *record, bool hold,
                       struct tenrec_link **ret, bool *ret_first, tenrec_error *err);
/* The chain is closed. */
void link_table_clear(struct link_table *t);

struct link_table *link_table_new(void); /* NULL: out of memory */
void link_table_drop(struct link_table *t);

/* This worker's own record; link_record_free. errors: as tenrec_link_bind */
tenrec_status link_own_record(struct tenrec_worker *w, bool with_secret, struct link_record *ret,
                              tenrec_error *err);

/* Makes this worker known to the peer. The worker is entered, no lock held. */
void link_announce(struct tenrec_worker *w, const struct tenrec_link *l);
void link_arrived(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg);

#endif
