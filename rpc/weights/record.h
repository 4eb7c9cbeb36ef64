/* SPDX-License-Identifier: Apache-2.0 */
/* record.h - the keeper's record of its sets: versions, their publishers' pieces, and which worker
 * has which version. A version becomes visible by one step under the record's lock.
 *
 * A request that must wait for an event is a call that is answered later; it is tried again at each
 * event of its set, and at the end of its time. Leases that have expired, and workers that have
 * left the group, are found then, too.
 */
#ifndef TENREC_WEIGHTS_RECORD_H
#define TENREC_WEIGHTS_RECORD_H

#include "rpc/call/function.h"
#include "rpc/future/worker.h"

#include <tenrec/rpc.h>
#include <tenrec/weights.h>

struct record_set;

struct record {
    struct tenrec_worker *w;
    struct loop_timer *timer; /* owns; between start and release: an ask or a lease expires */
    pthread_mutex_t lock;     /* guards the rest; answers are sent without it */
    struct record_set *sets;
    bool stopped;
};

/* The state of the service begins with it. */
static inline struct record *record_of(const struct tenrec_worker *w)
{
    return w->service[SERVICE_WEIGHTS];
}

void record_init(struct record *r, struct tenrec_worker *w);
void record_finish(struct record *r);

/* Accepts requests; forgets what a former start of the worker has recorded. errors: ENOMEM */
tenrec_status record_start(struct record *r, tenrec_error *err);
/* The loop may end. */
void record_release(struct record *r);
/* Answers all requests that wait with `why`, and later ones at once. */
void record_stop(struct record *r, const tenrec_error *why);

struct record_counts {
    uint64_t sets, versions, leases;
};
struct record_counts record_count(struct record *r);

/* The functions of a keeper, for workers of its group. errors: ENOMEM */
tenrec_status record_serve(struct functions *f, tenrec_error *err);

/* Their arguments, after the name of the set, a number of this life of the caller, one of its
 * handle, and one of what it publishes or pulls; and their results:
 *
 *     publish  version, publishers, pieces
 *              the oldest version that is still used, once all parts are there
 *     pull     version, after, digest of the boxes, lease in ms, worker and number that failed (0:
 *              none), and whether a publisher failed
 *              [version, worker, number (0: read the pieces), [pieces of each publisher]]
 *     done     version
 *     report   version, status, text
 *     wait     version, reports
 *              [version, [pieces of each publisher], [{holder}]]
 *     leave
 */
#define RECORD_PUBLISH "tenrec.weights.publish"
#define RECORD_PULL "tenrec.weights.pull"
#define RECORD_DONE "tenrec.weights.done"
#define RECORD_REPORT "tenrec.weights.report"
#define RECORD_WAIT "tenrec.weights.wait"
#define RECORD_LEAVE "tenrec.weights.leave"

#endif
