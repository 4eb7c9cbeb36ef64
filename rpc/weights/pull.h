/* SPDX-License-Identifier: Apache-2.0 */
/* pull.h - a pull under way. */
#ifndef TENREC_WEIGHTS_PULL_H
#define TENREC_WEIGHTS_PULL_H

#include "rpc/weights/edition.h"

enum {
    PULL_BUCKET_RUNS = 256,
    PULL_TRIES = 3, /* with the publishers */
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
    /* The next byte. */
    size_t run;
    uint64_t done;         /* of the run */
    uint64_t bucket_bytes; /* at most */
    struct tenrec_bulk bucket[PULL_BUCKET_RUNS];
};

/* ---- pull_source.c ------------------------------------------------------------------ */

/* Frees the keeper's answer and what was made of it. */
void pull_forget(struct pull *p);
/* Asks for a version; `failed`: the source that has failed, or NULL. ret_version: of the answer */
tenrec_status pull_ask(struct pull *p, int64_t version, const char *failed, int64_t *ret_version,
                       tenrec_error *err);
/* Waits until another reader has so many bytes. ret: may be NULL; its references */
tenrec_status pull_await_source(struct pull *p, uint64_t bytes, struct tenrec_value **ret,
                                tenrec_error *err);
tenrec_status pull_read_refs(struct pull *p, tenrec_error *err);
/* When a source that gives nothing may be replaced, from now on. */
uint64_t pull_before_stall(const struct pull *p);

#endif
