/* SPDX-License-Identifier: Apache-2.0 */
/* parameter_table.h - the weights that worker 0 owns, and the functions on them. */
#ifndef PARAMETER_TABLE_H
#define PARAMETER_TABLE_H

#include <pthread.h>
#include <stdbool.h>
#include <tenrec/rref.h>
#include <tenrec/tenrec.h>

#define WEIGHTS 64
#define TRAINERS_MAX 64
#define RATE 0.003f /* learning rate */

struct trainer {
    struct tenrec_rref *seen; /* its sample counter; NULL: none, or lost */
    struct tenrec_call *done; /* its call of done(), answered when all are done */
    bool lost;
};

struct table {
    pthread_mutex_t lock; /* guards all but the elements of weights */
    pthread_cond_t moved;
    struct tenrec_tensor *weights; /* replaced, never changed: a pull shares it */
    int updates, wanted;
    double loss;                          /* of the last update */
    struct trainer trainer[TRAINERS_MAX]; /* by id */
};

/* Makes float32 weights, all zero; NULL with *err when out of memory. */
struct tenrec_tensor *weights_new(tenrec_error *err);

tenrec_status table_init(struct table *t, int updates, tenrec_error *err);
void table_finish(struct table *t);

/* Registers open(), which makes a reference to `t`, and the functions to call on the
 * reference: join(seen), pull(), push(gradient, loss) and done(). */
tenrec_status table_register(struct tenrec_worker *w, struct table *t, tenrec_error *err);

#endif
