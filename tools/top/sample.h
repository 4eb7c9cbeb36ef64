/* SPDX-License-Identifier: Apache-2.0 */
/* sample.h - the workers of a group at one time. */
#ifndef TENREC_TOOLS_TOP_SAMPLE_H
#define TENREC_TOOLS_TOP_SAMPLE_H

#include "group/membership/member_record.h"
#include "top/reading.h"

enum sample_state {
    SAMPLE_UP,
    SAMPLE_JOINING, /* a member that has not answered yet */
    SAMPLE_SILENT,  /* did not answer in time, or refused to */
    SAMPLE_STOPPED, /* its process, on this host, is stopped */
    SAMPLE_LOST,    /* its process is gone */
};

struct sample_worker {
    char name[TENREC_NAME_MAX + 1];
    char host[65]; /* "": unknown */
    tenrec_peer id;
    enum sample_state state;
    uint64_t since_ns; /* that it is in this state, on our clock */
    char why[128];     /* it is not up */
    struct member_process process;
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

/* rate.c: the load of workers and functions between two samples. Numbers that are not known are
 * NAN. */

/* Of the calls in the interval, of one side. */
struct rate_side {
    double per_s, p50_s, p99_s;
};

struct rate_error {
    char status[32];
    int64_t calls;
};

enum { RATE_ERRORS = 8 };

/* A function in all workers. */
struct rate_function {
    char name[256];
    struct rate_side client, server;
    struct rate_error error[RATE_ERRORS]; /* in the interval, of both sides */
    int n_errors;
};

struct rate_worker {
    const struct sample_worker *worker; /* borrowed from the later sample */
    double made_per_s, served_per_s;
    struct rate_side client, server; /* per_s: as the durations count them */
};

/* `before` is NULL in the first sample. */
void rate_of_worker(const struct sample_worker *before, const struct sample_worker *now,
                    struct rate_worker *ret);

/* The functions that workers called between two samples or ever, by name. *ret is the caller's, to
 * be freed. Returns their number; 0 also without memory. */
size_t rate_functions(const struct sample *before, const struct sample *now,
                      struct rate_function **ret);

#endif
