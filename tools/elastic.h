/* SPDX-License-Identifier: Apache-2.0 */
/* elastic.h - when a failed worker of an elastic run is started again, and when
 * the run is over. Decides only; knows no process. */
#ifndef TENREC_TOOLS_ELASTIC_H
#define TENREC_TOOLS_ELASTIC_H

#include <stdbool.h>
#include <stdint.h>

struct elastic_plan {
    int min, max;     /* of slots; max 0: the run is not elastic */
    int restarts;     /* of each slot */
    const char *join; /* URL of a store that is there already; NULL: ours */
};

/* One slot: a worker and those that take its place. */
struct elastic_slot {
    int life;            /* of its worker, from 0 */
    bool done;           /* it ended well */
    uint64_t started_ns; /* the present life */
    uint64_t again_ns;   /* when the next one begins; 0: none is to */
    unsigned in_a_row;   /* lives that ended soon */
};

struct elastic {
    const struct elastic_plan *plan;
    int done, waiting, lost; /* slots */
};

/* What a failure leads to. */
enum elastic_next {
    ELASTIC_AGAIN,  /* another life, at slot->again_ns */
    ELASTIC_GO_ON,  /* the slot is lost, the others go on */
    ELASTIC_IS_OVER /* they would be too few */
};

void elastic_begin(struct elastic_slot *s, uint64_t now_ns);
void elastic_ended_well(struct elastic *e, struct elastic_slot *s);
/* running: workers that do so now. */
enum elastic_next elastic_failed(struct elastic *e, struct elastic_slot *s, int running,
                                 uint64_t now_ns);
/* The slot's next life is about to begin. */
void elastic_again(struct elastic *e, struct elastic_slot *s, uint64_t now_ns);

#endif
