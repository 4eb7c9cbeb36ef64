/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/agent.h"

#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MOUNT "/sys/fs/cgroup"

static unsigned processors_least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Reads a cpu.max: "QUOTA PERIOD" in microseconds, or "max PERIOD". */
static unsigned quota_read(const char *path)
{
    unsigned long long quota = 0, period = 0, n;
    FILE *f = fopen(path, "re");
    const int fields = f ? fscanf(f, "%llu %llu", &quota, &period) : 0;

    if (f)
        fclose(f);
    if (fields != 2 || !quota || !period)
        return UINT_MAX;
    n = quota / period + (quota % period != 0);
    return n < UINT_MAX ? (unsigned)n : UINT_MAX;
}

unsigned processors_quota(const char *mount, const char *group)
{
    char path[PATH_MAX];
    size_t len = strlen(group);
    unsigned n = UINT_MAX;

    for (;;) {
        const int k = snprintf(path, sizeof path, "%s%.*s/cpu.max", mount, (int)len, group);

        if (k > 0 && (size_t)k < sizeof path)
            n = processors_least(n, quota_read(path));
        if (len == 0)
            return n;
        do
            len--;
        while (len > 0 && group[len] != '/');
    }
}

/* Finds the cgroup of this process: the line "0::/a/b". Returns false if v2 has none. */
static bool group_find(char *ret, size_t room)
{
    FILE *f = fopen("/proc/self/cgroup", "re");
    char line[PATH_MAX];
    bool found = false;

    while (f && !found && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        found = strncmp(line, "0::/", 4) == 0;
    }
    if (f)
        fclose(f);
    if (found)
        snprintf(ret, room, "%s", line + 3);
    return found;
}

unsigned processors_allotted(void)
{
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned n = online > 0 && online < UINT_MAX ? (unsigned)online : UINT_MAX;
    char group[PATH_MAX];

    if (group_find(group, sizeof group))
        n = processors_least(n, processors_quota(MOUNT, group));
    return n > 0 ? n : 1;
}

unsigned processors_usable(void)
{
    unsigned n = processors_allotted();
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof set, &set) == 0) /* fails beyond 1024 processors */
        n = processors_least(n, (unsigned)CPU_COUNT(&set));
    return n > 0 ? n : 1;
}
