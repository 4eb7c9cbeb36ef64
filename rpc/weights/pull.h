/* SPDX-License-Identifier: Apache-2.0 */
/* pull.h - a pull under way. */
#ifndef TENREC_WEIGHTS_PULL_H
#define TENREC_WEIGHTS_PULL_H

#include "rpc/weights/edition.h"

enum {
    PULL_TRIES = 3,  /* with the publishers */
    PULL_RUNS = 256, /* of a bucket */
    PULL_FLIGHT = 8, /* buckets under way */
};

/* A published box in a wanted one. */
struct pull_sum {
    const struct piece *have, *want;
    struct tenrec_tensor *tensor; /* of the wanted box; borrowed */
    uint64_t begin;               /* of the wanted box, in the bytes of the pull */
    struct piece_sum sum;
    bool over;
};

/* The checksums of what arrives. */
struct pull_sums {
    struct pull_sum *sum;       /* owns; in the order of the wanted boxes */
    size_t n, first;            /* that is not over */
    struct tenrec_tensor *copy; /* owns: of a box on a device, in the host; NULL: none yet */
    const struct piece *copied; /* that box */
    const struct piece *wrong;  /* has not the checksum that was published; NULL: none */
};

/* Bytes that are read together. */
struct pull_bucket {
    struct tenrec_future *f; /* shared */
    uint64_t end;            /* in the bytes of the pull */
};

/* The buckets under way. */
struct pull_window {
    uint64_t bucket_bytes;      /* at most */
    uint64_t has;               /* bytes that the source has */
    uint64_t asked;             /* bytes that have arrived, or are under way */
    struct tenrec_future *more; /* the source's answer when it has more; NULL: not asked */
    struct pull_bucket bucket[PULL_FLIGHT]; /* n, in the order of their bytes */
    size_t n;
};

struct pull {
    const struct tenrec_weights *s;
    const struct tenrec_weights_box *boxes;
    size_t n;
    int64_t version, after; /* that is asked for */
    uint64_t until_ns;
    int64_t digest;    /* of the boxes */
    struct edition *h; /* shared */
    /* The keeper's answer. */
    struct tenrec_value *answer; /* owns */
    int64_t source_number;       /* of another reader; 0: the publishers */
    const char *source;          /* borrowed from the answer */
    struct piece *have;          /* owns; of the publishers */
    size_t n_have;
    struct tenrec_region_ref *refs; /* owns; of another reader */
    struct piece_plan plan;
    unsigned publisher_failures;
    /* The next byte that is asked for. */
    size_t run;
    uint64_t done; /* of the run */
    struct pull_window window;
    struct pull_sums sums;
    struct tenrec_bulk entry[PULL_RUNS]; /* of the next bucket */
};

/* ---- pull_source.c ------------------------------------------------------------------ */

/* Frees the keeper's answer and what was made of it. */
void pull_forget(struct pull *p);
/* Asks for a version; `failed`: the source that has failed, or NULL. ret_version: of the answer */
tenrec_status pull_ask(struct pull *p, int64_t version, const char *failed, int64_t *ret_version,
                       tenrec_error *err);
/* Asks another reader for its references, or for how many bytes it has once it has so many. */
tenrec_status pull_ask_source(struct pull *p, uint64_t bytes, bool refs, struct tenrec_future **ret,
                              tenrec_error *err);
tenrec_status pull_read_refs(struct pull *p, tenrec_error *err);
/* When a source that gives nothing may be replaced, from now on. */
uint64_t pull_before_stall(const struct pull *p);

/* ---- pull_window.c ------------------------------------------------------------------ */

/* Reads the rest of the plan from the source. */
tenrec_status pull_transfer(struct pull *p, tenrec_error *err);

/* ---- pull_sums.c -------------------------------------------------------------------- */

/* Finds the published boxes that are in wanted ones. errors: ENOMEM */
tenrec_status sums_make(struct pull_sums *s, const struct pull *p, tenrec_error *err);
void sums_finish(struct pull_sums *s); /* safe on zeroed memory */
/* So many bytes of the pull have arrived. errors: ENOMEM, the driver's */
tenrec_status sums_add(struct pull_sums *s, uint64_t arrived, tenrec_error *err);

#endif
