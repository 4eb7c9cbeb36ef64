/* SPDX-License-Identifier: Apache-2.0 */
/* parameter_table.h - the weights that worker 0 keeps, and what calls do with them. */
#ifndef PARAMETER_TABLE_H
#define PARAMETER_TABLE_H

#include <pthread.h>
#include <stdbool.h>
#include <tenrec/rref.h>
#include <tenrec/tenrec.h>

#define WEIGHTS 64
#define TRAINERS_MAX 64
#define RATE 0.003f /* of learning */

struct trainer {
    struct tenrec_rref *seen; /* its own count of samples; NULL: none, or lost */
    struct tenrec_call *done; /* answered when all are */
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

/* Float32, all zero; NULL with *err when there is no memory. */
struct tenrec_tensor *weights_new(tenrec_error *err);

tenrec_status table_init(struct table *t, int updates, tenrec_error *err);
void table_finish(struct table *t);

/* open() makes a reference to `t`; join(seen), pull(), push(gradient, loss) and
 * done() are called on one. */
tenrec_status table_register(struct tenrec_worker *w, struct table *t, tenrec_error *err);

#endif
