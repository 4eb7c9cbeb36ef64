/* SPDX-License-Identifier: Apache-2.0 */
/* slurm.h - what Slurm's variables say of a task's step. */
#ifndef TENREC_GROUP_SLURM_H
#define TENREC_GROUP_SLURM_H

#include "group/launch.h"

#include <stddef.h>

/* Whether this is a task of a step (srun): the shell of a batch job has
 * Slurm's variables too. */
bool slurm_is_task(launch_lookup_fn *lookup, void *arg);

/* Tasks of the step on this node, -1 when it does not say. */
int32_t slurm_local_tasks(launch_lookup_fn *lookup, void *arg);

/* The node where rank 0 runs, and a port that follows from the job and step
 * (10000..29999, below those that the kernel gives out). False when Slurm does
 * not tell enough. */
bool slurm_place(launch_lookup_fn *lookup, void *arg, char *ret_host, size_t room,
                 uint16_t *ret_port);

/* First host of a list such as "gpu[03-07,9],login1"; false for nonsense. */
bool slurm_first_host(const char *list, char *ret, size_t room);

/* The count of node `node` in "4(x2),3"; -1 for nonsense. */
int32_t slurm_count_at(const char *text, long node);

#endif
