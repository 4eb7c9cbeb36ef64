/* SPDX-License-Identifier: Apache-2.0 */
/* weights.c - versions of weights from a trainer to generators, which may die:
 *
 *     tenrec run --elastic 4:4 --restarts 1 -- weights [--versions N] [--kill SLOT]
 *
 * Slot 0 trains, and publishes a version after each step. The others wait for a version newer
 * than theirs, check it, and generate with it. With --kill a generator kills itself in the
 * middle: trainer and generators go on, the run restarts it, and it begins with the version of
 * that moment. All end with the same weights, and so the same words. */
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <tenrec/tenrec.h>
#include <time.h>

enum { WORDS = 512, SENTENCE = 8, SLOTS_MAX = 64, VERSIONS = 30, STEP_MS = 20, WAIT_MS = 20000 };

#define WEIGHTS ((size_t)WORDS * WORDS) /* the score of each word after each other */

/* FNV-1a: travels with a version, so that a generator knows that it has all of it. */
static int64_t checksum(const struct tenrec_tensor *weights)
{
    const unsigned char *byte = tenrec_tensor_data(weights);
    uint64_t sum = 0xcbf29ce484222325u;

    for (uint64_t i = 0; i < tenrec_tensor_bytes(weights); i++)
        sum = (sum ^ byte[i]) * 0x100000001b3u;
    return (int64_t)sum;
}

/* ---- the trainer ------------------------------------------------------------------------- */

struct trainer {
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t moved;
    struct tenrec_tensor *weights; /* replaced, never changed: generators read the same memory */
    int64_t version, last, sum;
    struct tenrec_call *waiting[SLOTS_MAX]; /* for a newer version, by id; NULL: none */
    bool done[SLOTS_MAX];                   /* has the last version */
};

/* Answers a call of pull with the present version, or with nil after the last. */
static void answer(const struct trainer *t, struct tenrec_call *call, bool end)
{
    const struct tenrec_value item[] = { tenrec_value_int(t->version), tenrec_value_int(t->sum),
                                         tenrec_value_tensor(t->weights) };
    const struct tenrec_value v = end ? tenrec_value_nil() : tenrec_value_array(item, 3);
    tenrec_error err;

    tenrec_call_finish(call, tenrec_call_return(call, &v, &err) == TENREC_OK ? NULL : &err);
}

/* pull(have): answers once there is a version newer than `have`, with [version, checksum, weights];
 * with nil if there will be none. A call instead of a question every few milliseconds. */
static tenrec_status pull(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    const tenrec_peer id = tenrec_call_from(call).id;
    struct tenrec_call *former = NULL;
    struct trainer *t = arg;
    int64_t have;

    if (tenrec_call_get_args(call, err, "i", &have))
        return err->code;
    if (id < 1 || id >= SLOTS_MAX)
        return tenrec_fail(err, TENREC_EINVAL, "worker %d is no generator", (int)id);
    pthread_mutex_lock(&t->lock);
    former = t->waiting[id]; /* of a life that was killed: no one reads the answer */
    t->waiting[id] = NULL;
    t->done[id] = have == t->last;
    if (have < t->version || t->done[id])
        answer(t, call, t->done[id]);
    else
        t->waiting[id] = call;
    pthread_cond_broadcast(&t->moved);
    pthread_mutex_unlock(&t->lock);
    ...
}
