/* SPDX-License-Identifier: Apache-2.0 */
/* slurm.h - reads a task's step from Slurm's variables. */
#ifndef TENREC_MEETING_SLURM_H
#define TENREC_MEETING_SLURM_H

#include "group/meeting/launch.h"

#include <stddef.h>

/* Returns true if this is a task of a step (srun): the shell of a batch job has Slurm's variables
 * too. */
bool slurm_is_task(void);

/* Tasks of the step on this node, -1 if unknown. */
int32_t slurm_local_tasks(void);

/* Finds the node of rank 0, and a port derived from the job and step (10000..29999, below the
 * kernel's own). Returns false if Slurm's variables do not suffice. */
bool slurm_place(char *ret_host, size_t room, uint16_t *ret_port);

/* First host of a list such as "gpu[03-07,9],login1". Returns false if the list is malformed. */
bool slurm_first_host(const char *list, char *ret, size_t room);

/* The count of node `node` in "4(x2),3"; -1 if malformed. */
int32_t slurm_count_at(const char *text, long node);

#endif
