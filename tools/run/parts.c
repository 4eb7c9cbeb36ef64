/* SPDX-License-Identifier: Apache-2.0 */
#include "run/workers.h"

#include "core/base/file.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int parts_open(const struct tool *self, const char *path, struct parts *ret)
{
    const char *tmp = secure_getenv("TMPDIR");
    tenrec_error err;
    int fd;

    if (private_file_open(path, PRIVATE_FILE_NAMED, &fd, &err) != TENREC_OK)
        return tool_fail(self, "--trace: %s", err.text);
    close(fd);
    *ret = (struct parts){ .path = path };
    if (asprintf(&ret->folder, "%s/tenrec-trace-XXXXXX", tmp && *tmp ? tmp : "/tmp") < 0) {
        ret->folder = NULL;
        return tool_fail(self, "--trace: out of memory");
    }
    if (!mkdtemp(ret->folder) ||
        asprintf(&ret->setting, "TENREC_WORKER__TRACE=%s/{rank}.json", ret->folder) < 0) {
        tool_fail(self, "--trace: cannot make the folder '%s': %s", ret->folder, strerror(errno));
        free(ret->folder);
        return TOOL_FAILED;
    }
    return TOOL_OK;
}

/* The parts read so far. */
struct joining {
    FILE *file;
    bool any, failed;
    double clock_ns; /* of the part that began first */
};

static double clock_of(const json_t *part)
{
    return json_number_value(json_object_get(json_object_get(part, "otherData"), "clock_ns"));
}

/* Writes the events of a part, with times from the start of the first part instead
 * of its own. The workers run on one machine and share its clock. */
static void put_part(struct joining *j, json_t *part)
{
    const double shift_us = (clock_of(part) - j->clock_ns) / 1000.0;
    json_t *events = json_object_get(part, "traceEvents"), *event, *ts;
    size_t i;

    json_array_foreach(events, i, event)
    {
        ts = json_object_get(event, "ts");
        if (ts)
            json_object_set_new(event, "ts", json_real(json_number_value(ts) + shift_us));
        if (fputs(j->any ? ",\n" : "\n", j->file) < 0 ||
            json_dumpf(event, j->file, JSON_COMPACT | JSON_REAL_PRECISION(15)) != 0)
            j->failed = true;
        j->any = true;
    }
}

/* Reads the part of each rank that has written one, and removes the files. */
static int read_parts(const struct tool *self, const struct parts *p, int n, json_t **part)
{
    char path[PATH_MAX];
    int found = 0;

    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%d.json", p->folder, i);
        part[i] = json_load_file(path, 0, NULL);
        unlink(path);
        found += part[i] != NULL;
        if (!part[i])
            tool_fail(self,
                      "worker %d wrote no trace: the process has not shut down a Tenrec worker", i);
    }
    return found;
}

/* Returns NULL with errno. */
static FILE *parts_file(const char *path)
{
    tenrec_error err;
    FILE *file = NULL;
    int fd;

    if (private_file_open(path, PRIVATE_FILE_NAMED, &fd, &err) != TENREC_OK)
        errno = err.os_errno;
    else if (!(file = fdopen(fd, "w")))
        close(fd);
    return file;
}

static int parts_fail(const struct tool *self, const struct parts *p)
{
    tenrec_error err;

    file_limit_fail(&err, errno, "cannot write '%s'", p->path);
    return tool_fail(self, "--trace: %s", err.text);
}

int parts_join(const struct tool *self, struct parts *p, int n, bool some_missing)
{
    struct joining j = { .file = parts_file(p->path) };
    json_t **part = calloc((size_t)n, sizeof(json_t *));
    int status = TOOL_OK, found = part ? read_parts(self, p, n, part) : 0;
    struct file_limit held;

    rmdir(p->folder);
    file_limit_hold(&held);
    if (!j.file || !part) {
        status = parts_fail(self, p);
    } else {
        for (int i = 0; i < n; i++)
            if (part[i] && (j.clock_ns == 0 || clock_of(part[i]) < j.clock_ns))
                j.clock_ns = clock_of(part[i]);
        fprintf(j.file, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
        for (int i = 0; i < n; i++)
            put_part(&j, part[i]);
        if (fputs("\n]}\n", j.file) < 0)
            j.failed = true;
    }
    if (j.file && (fclose(j.file) != 0 || j.failed))
        status = parts_fail(self, p);
    file_limit_release(&held);
    if (status == TOOL_OK && found < n && !some_missing)
        status = TOOL_FAILED;
    for (int i = 0; part && i < n; i++)
        json_decref(part[i]);
    free(part);
    free(p->folder);
    free(p->setting);
    return status;
}
