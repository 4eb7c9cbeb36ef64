/* SPDX-License-Identifier: Apache-2.0 */
/* weights_support.h - helpers of the tests of weights. */
#ifndef TESTS_WEIGHTS_WEIGHTS_SUPPORT_H
#define TESTS_WEIGHTS_WEIGHTS_SUPPORT_H

#include <pthread.h>
#include <tenrec/tenrec.h>
#include <tenrec/weights.h>

#include "../support/cluster.h"

#define SET "policy"

/* A matrix of int32 whose elements name their version and their place in the whole matrix. */
struct tenrec_tensor *matrix_new(int64_t rows, int64_t columns);
void matrix_fill(struct tenrec_tensor *t, const int64_t *shape, const int64_t *at, int64_t version);
bool matrix_is(const struct tenrec_tensor *t, const int64_t *shape, const int64_t *at,
               int64_t version);

/* The whole, or a part, of a named tensor. */
struct tenrec_weights_box whole(const char *name, struct tenrec_tensor *t);
struct tenrec_weights_box part(const char *name, struct tenrec_tensor *t, const int64_t *shape,
                               const int64_t *at);

struct tenrec_weights *open_set(struct tenrec_worker *w);

/* Publishes a matrix "m" of a version, whole; returns the status. */
tenrec_status publish(struct tenrec_weights *s, int64_t version, struct tenrec_tensor *t,
                      tenrec_error *err);
/* Pulls "m", whole. */
tenrec_status pull(struct tenrec_weights *s, int64_t version, struct tenrec_tensor *t,
                   int64_t *ret_version, tenrec_error *err);
/* The same on a thread. */
struct pulling {
    pthread_t thread;
    struct tenrec_weights *s;
    int64_t version, after, got, timeout_ms;
    struct tenrec_tensor *t;
    tenrec_status st;
    tenrec_error err;
};
void pull_begin(struct pulling *p);
void pull_end(struct pulling *p);

/* The state of a worker in the set: "has", ...; "" if it is not a holder of the version. */
const char *state_of(struct tenrec_weights *s, const char *worker, int64_t version, char ret[32]);
/* The error that it has reported. */
bool error_is(struct tenrec_weights *s, const char *worker, const char *text);

int64_t info_of(struct tenrec_worker *w, const char *key);

#endif
