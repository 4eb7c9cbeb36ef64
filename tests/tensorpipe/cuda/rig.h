/* SPDX-License-Identifier: Apache-2.0 */
/* rig.h - two agents that send each other tensors of devices: in this process, or
 * the second one in a process of its own. */
#ifndef TESTS_CUDA_RIG_H
#define TESTS_CUDA_RIG_H

#include "fake.h"
#include "node.h"

#define RIG_TENSORS 8
#define RIG_CPU -1

struct rig {
    struct node n[2]; /* the second one: when it is in this process */
    pid_t child;      /* 0: it is */
    int talk;
    union tenrec_option_value channels[8]; /* of both; owns */
    size_t n_channels;
    struct call call;
    struct sent *sent;
    bool ready; /* the sent memory is ready before: for calls that fail */
    /* The driver's call that fails while the next message is under way. */
    const char *fails;
    unsigned nth;
    bool failed; /* it did */
};

struct rig_setup {
    const char *channels; /* "cuda_ipc,cuda_basic"; NULL: as by default */
    bool two_processes;
    const char *transport; /* NULL: uv */
    uint64_t staging;      /* 0: as by default */
    int devices;           /* -1: none on the first side; -2: none on the second */
    const char *child_env; /* "NAME=value" */
};

/* One tensor there and back. */
struct rig_tensor {
    size_t bytes;
    int from, there, back; /* devices; RIG_CPU */
};

/* For main: does what the child does when this process is one, and ends it. */
void rig_child(int argc, char **argv);

void rig_open(struct rig *r, const struct rig_setup *setup);
/* Sends them, and checks what comes back. What an answer is wrong in fails the test;
 * a call that fails is returned, *err says why. */
tenrec_status rig_try(struct rig *r, const struct rig_tensor *t, unsigned n, uint32_t seed,
                      tenrec_error *err);
/* The two halves of it. */
void rig_start(struct rig *r, const struct rig_tensor *t, unsigned n, uint32_t seed);
tenrec_status rig_end(struct rig *r, const struct rig_tensor *t, unsigned n, uint32_t seed,
                      tenrec_error *err);
void rig_call(struct rig *r, const struct rig_tensor *t, unsigned n, uint32_t seed);
/* A message without tensors goes through. */
void rig_ping(struct rig *r);
uint64_t rig_count(struct rig *r, const char *key);
/* Ends both, and fails the test when something is left or was misused. */
void rig_close(struct rig *r);
void rig_kill(struct rig *r); /* the child */

#endif
