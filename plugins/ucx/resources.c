/* SPDX-License-Identifier: Apache-2.0 */
#include "resources.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

void resources_drop(struct resources *r)
{
    free(r->text);
    r->text = NULL;
}

/* ---- UCX's text --------------------------------------------------------------------- */

/* A line is "#      resource 2  :  md 1  dev 2  flags -- tcp/eth0". */
bool resources_next(const struct resources *r, size_t *at, char transport[64], char device[64])
{
    const char *line = r->text + *at;

    while ((line = strstr(line, "resource ")) != NULL) {
        const char *end = line + strcspn(line, "\n"), *dash = strstr(line, "-- ");

        if (dash && dash < end && sscanf(dash, "-- %63[^/ \n]/%63[^ \n]", transport, device) == 2) {
            *at = (size_t)(end - r->text);
            return true;
        }
        line = end;
    }
    return false;
}

bool resources_has(const struct resources *r, const char *transport, char *devices, size_t room)
{
    char name[64], device[64];
    size_t at = 0, used = 0;
    bool found = false;

    if (room)
        *devices = '\0';
    while (resources_next(r, &at, name, device)) {
        if (strcmp(name, transport) != 0)
            continue;
        if (used + strlen(device) + 3 < room)
            used += (size_t)snprintf(devices + used, room - used, "%s%s", used ? ", " : "", device);
        found = true;
    }
    return found;
}

/* A line is "#     component 4  :  ib". */
bool resources_has_component(const struct resources *r, const char *component)
{
    const char *line = r->text;
    char name[64];

    while ((line = strstr(line, "component ")) != NULL) {
        if (sscanf(line, "component %*d : %63s", name) == 1 && strcmp(name, component) == 0)
            return true;
        line++;
    }
    return false;
}

/* ---- reasons --------------------------------------------------------------------------- */

bool resources_is_fast(const char *transport)
{
    static const char *const family[] = { "rc", "dc", "ud", "srd", "gga", "ugni" };

    for (size_t i = 0; i < sizeof family / sizeof family[0]; i++) {
        const size_t n = strlen(family[i]);

        if (strncmp(transport, family[i], n) == 0 && (transport[n] == '_' || !transport[n]))
            return true;
    }
    return false;
}

bool resources_find_fast(const struct resources *r, char ret[130])
{
    char name[64], device[64];
    size_t at = 0;

    while (resources_next(r, &at, name, device))
        if (resources_is_fast(name)) {
            snprintf(ret, 130, "%s/%s", name, device);
            return true;
        }
    return false;
}

/* The first entry of the folder that begins with `prefix`. */
static bool folder_has(const char *path, const char *prefix, char ret[64])
{
    DIR *folder = opendir(path);
    const struct dirent *entry;
    bool found = false;

    while (folder && !found && (entry = readdir(folder)) != NULL) {
        found = entry->d_name[0] != '.' && strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
        if (found)
            snprintf(ret, 64, "%.63s", entry->d_name);
    }
    if (folder)
        closedir(folder);
    return found;
}

void resources_why_no_ib(const struct resources *all, char why[RESOURCES_WHY])
{
    char device[64], file[64];

    if (!resources_has_component(all, "ib"))
        snprintf(why, RESOURCES_WHY, "this UCX was built without InfiniBand");
    else if (!folder_has("/sys/class/infiniband", "", device))
        snprintf(why, RESOURCES_WHY,
                 "no InfiniBand or RoCE device: /sys/class/infiniband has no entry");
    else if (!folder_has("/dev/infiniband", "uverbs", file))
        snprintf(why, RESOURCES_WHY,
                 "device \"%s\" has no file /dev/infiniband/uverbs*: load the module ib_uverbs, or "
                 "give the container its devices",
                 device);
    else
        snprintf(why, RESOURCES_WHY,
                 "UCX cannot use device \"%s\": see ucx_info -d, and the limit of locked memory "
                 "(ulimit -l)",
                 device);
}
