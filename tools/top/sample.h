/* SPDX-License-Identifier: Apache-2.0 */
/* sample.h - the workers of a group at one time. */
#ifndef TENREC_TOOLS_TOP_SAMPLE_H
#define TENREC_TOOLS_TOP_SAMPLE_H

#include "top/reading.h"

enum sample_state {
    SAMPLE_UP,
    SAMPLE_JOINING, /* a member that has not answered yet */
    SAMPLE_SILENT,  /* did not answer in time, or refused to */
    SAMPLE_LOST,    /* its process is gone */
};

struct sample_worker {
    char name[TENREC_NAME_MAX + 1];
    tenrec_peer id;
    enum sample_state state;
    uint64_t since_ns; /* that it is in this state, on our clock */
    char why[128];     /* it is not up */
    struct reading reading;
};

struct sample {
    uint64_t at_ns; /* our clock */
    double time;    /* seconds since 1970 */
    char group[128], store[256];
    char error[512];              /* of the store; "" */
    struct sample_worker *worker; /* owns */
    size_t n;
};

const char *sample_state_name(enum sample_state state);

/* The worker of that name and id; NULL: none. */
struct sample_worker *sample_find(const struct sample *s, const char *name, tenrec_peer id);

/* Leaves it zeroed; safe on zeroed memory. */
void sample_finish(struct sample *s);

#endif
