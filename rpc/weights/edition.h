/* SPDX-License-Identifier: Apache-2.0 */
/* edition.h - what this worker has published or pulled of a version: regions that others read, and
 * the bytes of a pull that have arrived, in the order of its boxes. */
#ifndef TENREC_WEIGHTS_EDITION_H
#define TENREC_WEIGHTS_EDITION_H

#include "rpc/call/function.h"
#include "rpc/future/worker.h"
#include "rpc/weights/later.h"
#include "rpc/weights/piece.h"

#include <pthread.h>

struct tenrec_weights {
    struct tenrec_worker *w;
    int64_t number;
    char *set, *keeper;
};

enum edition_kind { EDITION_PULLED, EDITION_COPY, EDITION_IN_PLACE };

struct edition_memory {
    struct tenrec_tensor *tensor; /* shared */
    struct tenrec_region *region; /* owns; NULL: no bytes */
};

/* Shared by the list, by threads that use it, and by the bytes that may still arrive in it. */
struct edition {
    struct edition *next;
    struct editions *list;
    const struct tenrec_weights *of;
    int64_t number; /* of this worker, 1 or more */
    int64_t version;
    enum edition_kind kind;
    struct piece *piece; /* owns; n, with their references */
    struct edition_memory *memory;
    size_t n; /* 0: not registered yet */
    uint64_t arrived;
    bool whole; /* a pull that has ended well */
    bool over;  /* others may not read it any more */
    size_t refs, transfers;
    struct later *asks;
};

/* Of a worker. */
struct editions {
    pthread_mutex_t lock;   /* guards all here, and the editions but for `piece` and `memory` */
    pthread_cond_t changed; /* the last transfer of an edition has ended; monotonic */
    struct edition *first;
    int64_t life, next_number;
};

struct editions *editions_of(const struct tenrec_worker *w);
void editions_init(struct editions *l);
void editions_finish(struct editions *l);
/* A new life: others find nothing of a former one. errors: EOS */
tenrec_status editions_start(struct editions *l, tenrec_error *err);
int64_t editions_number(struct editions *l);
size_t editions_count(struct editions *l);
/* The version that this worker has published, or pulled to its end, last; 0: none. */
int64_t editions_version(struct editions *l);

/* An edition without memory, in the list. ret: shares. errors: ENOMEM */
tenrec_status edition_new(const struct tenrec_weights *s, enum edition_kind kind,
                          struct edition **ret, tenrec_error *err);
void edition_drop(struct edition *h);

/* Registers memory: the tensors of the boxes, or copies. Takes `piece`, whose references and, if
 * it is published, checksums are set here. errors: those of tenrec_region_new, ENOMEM */
tenrec_status edition_register(struct edition *h, int64_t version, struct piece *piece,
                               const struct tenrec_weights_box *boxes, size_t n, tenrec_error *err);

/* So many bytes have arrived. */
void edition_arrived(struct edition *h, uint64_t bytes);

/* A tensor of bytes of a box, into which they arrive. */
tenrec_status edition_bytes_new(struct edition *h, size_t i, uint64_t offset, uint64_t bytes,
                                struct tenrec_tensor **ret, tenrec_error *err);

/* Others read it no more, but for transfers that are under way; does not wait for these. It leaves
 * the list if there are none. */
void edition_end(struct edition *h);
/* Ends it, waits for the transfers and takes it out of the list. errors: ETIMEDOUT */
tenrec_status edition_end_wait(struct edition *h, uint64_t until_ns, tenrec_error *err);

/* Takes it out of the list, also while transfers are under way. */
void edition_unlist(struct edition *h);

/* The first for which `is`, which is called with the lock held, returns true. ret: shares; NULL:
 * none */
typedef bool edition_is_fn(const struct edition *h, const void *arg);
struct edition *edition_find(struct editions *l, edition_is_fn *is, const void *arg);

/* Takes out of the list what waited for the end of transfers. */
void editions_sweep(struct editions *l);

/* The function by which others read the references of an edition, and wait for its bytes: (number,
 * bytes, whether the references are wanted) -> the references, or how many bytes there are.
 * errors: ENOMEM */
#define EDITION_READ "tenrec.weights.read"
tenrec_status edition_serve(struct functions *f, tenrec_error *err);
/* The lock is held. Moves the readers that have an answer to *done. */
void edition_try(struct edition *h, struct later **done);
/* Ends all, and answers what waits with `why`. */
void editions_stop(struct editions *l, const tenrec_error *why);

/* ---- handle.c: what the functions of a handle share --------------------------------- */

/* errors: EINVAL */
tenrec_status handle_check_options(const struct tenrec_weights_options *o, uint32_t flags,
                                   tenrec_error *err);
/* The limit of what begins now. errors: EINVAL */
tenrec_status handle_deadline(const struct tenrec_weights *s, int64_t ms, uint64_t *ret_ns,
                              tenrec_error *err);
/* The rest of it, at least a millisecond. */
int64_t handle_left_ms(uint64_t until_ns);

/* Calls a function of the keeper (record.h), with the arguments that all have and `n` others. */
tenrec_status handle_ask(const struct tenrec_weights *s, const char *function, int64_t number,
                         const struct tenrec_value *args, size_t n, uint64_t until_ns,
                         struct tenrec_value **ret, tenrec_error *err);
/* Tells the keeper, without waiting, that the edition ends. */
void handle_leave(const struct tenrec_weights *s, const struct edition *h);

/* Memory of a box, as edition_find compares it. */
bool edition_overlaps(const struct edition *h, const void *tensor);

#endif
