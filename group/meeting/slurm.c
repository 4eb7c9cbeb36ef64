/* SPDX-License-Identifier: Apache-2.0 */
#include "group/meeting/launch.h"

#include <stdlib.h>
#include <string.h>

/* Slurm's own steps (batch script, external, interactive) have ids from here. */
#define FIRST_SPECIAL_STEP 0xfffffff0ul
#define FIRST_PORT 10000u
#define N_PORTS 20000u

bool slurm_is_task(void)
{
    const char *step = launch_variable("SLURM_STEP_ID");
    const char *tasks = launch_variable("SLURM_STEP_NUM_TASKS");

    if (!launch_variable("SLURM_PROCID"))
        return false;
    if (tasks && strtol(tasks, NULL, 10) > 1)
        return true;
    return step && strtoul(step, NULL, 10) < FIRST_SPECIAL_STEP;
}

int32_t slurm_count_at(const char *text, long node)
{
    while (*text) {
        char *end;
        long count = strtol(text, &end, 10), times = 1;
        if (end == text || count < 1 || count > INT32_MAX)
            return -1;
        if (end[0] == '(' && end[1] == 'x') {
            times = strtol(end + 2, &end, 10);
            if (*end++ != ')' || times < 1)
                return -1;
        }
        if (node < times)
            return (int32_t)count;
        node -= times;
        if (*end && *end++ != ',')
            return -1;
        text = end;
    }
    return -1;
}

int32_t slurm_local_tasks(void)
{
    const char *counts = launch_variable("SLURM_STEP_TASKS_PER_NODE");
    const char *node = launch_variable("SLURM_NODEID");

    if (!counts)
        return -1;
    return slurm_count_at(counts, node ? strtol(node, NULL, 10) : 0);
}

bool slurm_first_host(const char *list, char *ret, size_t room)
{
    size_t name = strcspn(list, "[,"), number = 0;
    const char *in = list + name;

    if (*in == '[') {
        number = strcspn(++in, "-,]");
        /* A suffix behind the bracket belongs to every host. */
        if (number == 0 || !strchr(in, ']'))
            return false;
    }
    if (name + number == 0 || name + number >= room)
        return false;
    memcpy(ret, list, name);
    memcpy(ret + name, in, number);
    ret[name + number] = '\0';
    if (number) {
        const char *behind = strchr(in, ']') + 1;
        size_t len = strcspn(behind, ",");
        if (name + number + len >= room || memchr(behind, '[', len))
            return false;
        memcpy(ret + name + number, behind, len);
        ret[name + number + len] = '\0';
    }
    return true;
}

bool slurm_store(char *ret_host, size_t room, uint16_t *ret_port)
{
    const char *nodes = launch_variable("SLURM_STEP_NODELIST");
    const char *launcher = launch_variable("SLURM_LAUNCH_NODE_IPADDR");
    const char *job = launch_variable("SLURM_JOB_ID"), *step = launch_variable("SLURM_STEP_ID");
    const char *n_nodes = launch_variable("SLURM_STEP_NUM_NODES");

    if (!job)
        return false;
    *ret_port =
        (uint16_t)(FIRST_PORT +
                   (strtoul(job, NULL, 10) * 61 + (step ? strtoul(step, NULL, 10) : 0)) % N_PORTS);
    if (n_nodes && strcmp(n_nodes, "1") == 0) {
        snprintf(ret_host, room, "127.0.0.1");
        return true;
    }
    /* Rank 0 runs on the first node of the step. The launch node, a last resort, may have no
     * listener. */
    if (nodes && slurm_first_host(nodes, ret_host, room))
        return true;
    if (!launcher || strlen(launcher) >= room)
        return false;
    snprintf(ret_host, room, "%s", launcher);
    return true;
}
