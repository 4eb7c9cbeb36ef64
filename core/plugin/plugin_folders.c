/* SPDX-License-Identifier: Apache-2.0 */
#include "core/plugin/plugin_file.h"

#include "core/base/log.h"
#include "core/base/memory.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *installed = TENREC_PLUGINDIR; /* set once, before it is read */

/* Returns the folder `below` of the first `len` bytes of a path, without links and dots in it; NULL
 * if it is no folder. */
static char *folder_below(const char *path, size_t len, const char *below)
{
    size_t size = len + 1 + strlen(below) + 1;
    char *joined = memory_new(size, 1), *found = NULL;
    struct stat sb;

    if (joined) {
        snprintf(joined, size, "%.*s/%s", (int)len, path, below);
        found = realpath(joined, NULL);
    }
    free(joined);
    if (found && stat(found, &sb) == 0 && S_ISDIR(sb.st_mode))
        return found;
    free(found);
    return NULL;
}

char *plugin_folders_beside(const char *file)
{
    char *real = realpath(file, NULL), *found = NULL;
    const char *slash = real ? strrchr(real, '/') : NULL;

    if (slash) {
        found = folder_below(real, (size_t)(slash - real), TENREC_PLUGINS_BESIDE);
        if (!found)
            found = folder_below(real, (size_t)(slash - real), TENREC_PLUGINS_FROM_BIN);
    }
    free(real);
    return found;
}

/* The library may have been moved after it was built, as in a wheel or an archive. A relative path
 * says nothing: the current folder may be another one by now. */
static void folders_find_installed(void)
{
    struct mapped_file own;
    const char *file;
    char *found = NULL;

    mapped_file_find(&installed, &own);
    file = *own.path ? own.path : "/proc/self/exe";
    if (*file == '/')
        found = plugin_folders_beside(file);
    if (found)
        installed = found;
}

/* Skips empty items of the variable: the current folder is never searched. */
static void folders_each(bool (*fn)(void *arg, const char *folder), void *arg)
{
    const char *env = secure_getenv("TENREC_PLUGIN_PATH");

    for (const char *p = env; p && *p;) {
        size_t n = strcspn(p, ":");
        char *folder = n ? memory_text_n(p, n) : NULL;
        bool stop = folder && fn(arg, folder);
        free(folder);
        if (stop)
            return;
        p += n + (p[n] == ':');
    }
    fn(arg, installed);
}

/* A user that can write to the folder decides which code is loaded: its owner, and any user
 * where the mode allows that. */
static bool folder_warn(void *arg, const char *folder)
{
    struct stat sb;
    const bool found = stat(folder, &sb) == 0 && S_ISDIR(sb.st_mode);

    (void)arg;
    if (!found && folder != installed)
        log_line(TENREC_LOG_WARN, "plugins", "TENREC_PLUGIN_PATH names '%s', which is no folder",
                 folder);
    if (found && ((sb.st_mode & S_IWOTH) || (sb.st_uid != 0 && sb.st_uid != geteuid())))
        log_line(TENREC_LOG_WARN, "plugins",
                 "other users can put plugins into '%s', which is searched for them", folder);
    return false;
}

static void folders_begin(void)
{
    folders_find_installed();
    folders_each(folder_warn, NULL);
}

void plugin_folders_each(bool (*fn)(void *arg, const char *folder), void *arg)
{
    static pthread_once_t begun = PTHREAD_ONCE_INIT;

    pthread_once(&begun, folders_begin);
    folders_each(fn, arg);
}
