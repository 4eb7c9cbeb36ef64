/* SPDX-License-Identifier: Apache-2.0 */
/* elastic.h - decides when a failed worker of an elastic run is restarted, and when
 * the run is over. Pure rules: handles no process. */
#ifndef TENREC_TOOLS_ELASTIC_H
#define TENREC_TOOLS_ELASTIC_H

#include <stdbool.h>
#include <stdint.h>

struct elastic_plan {
    int min, max;     /* of slots; max 0: the run is not elastic */
    int restarts;     /* of each slot */
    const char *join; /* URL of an existing store; NULL: the run serves one */
};

/* One slot: a worker and its restarts. */
struct elastic_slot {
    int life;            /* number of the worker's life, from 0 */
    bool done;           /* the worker exited with 0 */
    uint64_t started_ns; /* start of the present life */
    uint64_t again_ns;   /* start of the next life; 0: no restart is due */
    unsigned in_a_row;   /* consecutive short lives */
};

struct elastic {
    const struct elastic_plan *plan;
    int done, waiting, lost; /* slots */
};

/* The consequence of a failure. */
enum elastic_next {
    ELASTIC_AGAIN,  /* restart at slot->again_ns */
    ELASTIC_GO_ON,  /* the slot is lost, the others continue */
    ELASTIC_IS_OVER /* too few slots are left */
};

void elastic_ended_well(struct elastic *e, struct elastic_slot *s);
/* running   number of workers that run now */
enum elastic_next elastic_failed(struct elastic *e, struct elastic_slot *s, int running,
                                 uint64_t now_ns);
/* Call before the slot's next life starts. */
void elastic_again(struct elastic *e, struct elastic_slot *s);

#endif
