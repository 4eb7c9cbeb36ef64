/* SPDX-License-Identifier: Apache-2.0 */
/* trace_file.c - `worker.trace`: a worker that writes its trace at shutdown. */
#include "observe/profiler/profiler.h"
#include "observe/profiler/sessions.h"

#include "core/base/file.h"
#include "core/base/log.h"
#include "core/config/config.h"
#include "rpc/call/service.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Writes the path of the worker's file. Returns false if it is too long. */
static bool trace_file_path(const struct tenrec_worker *w, char path[static PATH_MAX])
{
    const char *pattern = w->settings->trace, *mark = strstr(pattern, "{rank}");
    int n = mark ? snprintf(path, PATH_MAX, "%.*s%d%s", (int)(mark - pattern), pattern, w->self.id,
                            mark + strlen("{rank}"))
                 : snprintf(path, PATH_MAX, "%s", pattern);

    return n > 0 && n < PATH_MAX;
}

tenrec_status trace_file_start(struct tenrec_worker *w, const struct service_session *session,
                               tenrec_error *err)
{
    /* The other workers write their own events. */
    const struct tenrec_profiler_options options = { .size = sizeof options,
                                                     .scope = TENREC_PROFILE_WORKER,
                                                     .flags = TENREC_PROFILE_LOCAL };
    char path[PATH_MAX];
    tenrec_status st;
    int fd;

    (void)session;
    if (!*w->settings->trace)
        return TENREC_OK;
    if (!trace_file_path(w, path))
        return tenrec_fail(err, TENREC_ECONFIG, "worker.trace: the path is longer than %d bytes",
                           PATH_MAX - 1);
    st =
        private_file_open(path, PRIVATE_FILE_NAMED, &fd, err); /* fails now, not after a long run */
    if (st != TENREC_OK) {
        tenrec_error_prefix(err, "worker.trace");
        return st;
    }
    close(fd);
    return tenrec_profiler_start(w, &options, &profiler_of(w)->file, err);
}

void trace_file_ended(struct tenrec_worker *w)
{
    struct tenrec_profiler *p = profiler_of(w)->file;
    char path[PATH_MAX];
    tenrec_error err;

    if (!p)
        return;
    profiler_of(w)->file = NULL;
    if (tenrec_profiler_stop(p, &err) != TENREC_OK || !trace_file_path(w, path) ||
        trace_json_write(p, path, true, &err) != TENREC_OK)
        log_line(TENREC_LOG_ERROR, w->self.name, "worker.trace: %s", err.text);
    else if (tenrec_profiler_dropped(p) > 0)
        log_line(TENREC_LOG_WARN, w->self.name, "worker.trace: '%s' lacks %llu events", path,
                 (unsigned long long)tenrec_profiler_dropped(p));
    tenrec_profiler_drop(p);
}
