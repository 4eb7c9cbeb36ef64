/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/locality.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

bool locality_boot_id(char buf[LOCALITY_PART_MAX])
{
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    bool there = f && fgets(buf, LOCALITY_PART_MAX, f);

    if (f)
        fclose(f);
    if (there)
        buf[strcspn(buf, "\n")] = '\0';
    return there && *buf;
}

bool locality_namespace(const char *which, char buf[LOCALITY_PART_MAX])
{
    char path[64];
    struct stat st;

    snprintf(path, sizeof path, "/proc/self/ns/%s", which);
    if (stat(path, &st) < 0)
        return false;
    snprintf(buf, LOCALITY_PART_MAX, "%llx_%llx", (unsigned long long)st.st_dev,
             (unsigned long long)st.st_ino);
    return true;
}
