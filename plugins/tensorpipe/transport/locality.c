/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/transport_local.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

bool locality_line(const char *path, char *ret, size_t cap)
{
    FILE *f = fopen(path, "re");
    const bool there = f && fgets(ret, (int)cap, f);

    if (f)
        fclose(f);
    if (there)
        ret[strcspn(ret, "\n")] = '\0';
    return there && *ret;
}

bool locality_boot_id(char buf[LOCALITY_PART_MAX])
{
    return locality_line("/proc/sys/kernel/random/boot_id", buf, LOCALITY_PART_MAX);
}

bool locality_file(const char *path, char buf[LOCALITY_PART_MAX])
{
    struct stat st;

    if (stat(path, &st) < 0)
        return false;
    snprintf(buf, LOCALITY_PART_MAX, "%llx_%llx", (unsigned long long)st.st_dev,
             (unsigned long long)st.st_ino);
    return true;
}

bool locality_namespace(const char *which, char buf[LOCALITY_PART_MAX])
{
    char path[64];

    snprintf(path, sizeof path, "/proc/self/ns/%s", which);
    return locality_file(path, buf);
}
