/* SPDX-License-Identifier: Apache-2.0 */
/* reporter.h - the thread that makes dumps and reports, as asking threads where they stand and
 * writing files block. It is started with the work, and exits without. */
#ifndef TENREC_RECORDER_REPORTER_H
#define TENREC_RECORDER_REPORTER_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <tenrec/error.h>
#include <tenrec/rpc.h>

/* Queued; runs once, on the reporter's thread. */
struct report {
    struct report *next;
    void (*run)(struct report *r); /* frees it */
};

/* Each kind has a queue: peers that ask for many dumps hold up no report of this process. */
enum report_kind {
    REPORT_OWN,   /* of stuck handlers, and into files; first */
    REPORT_ASKED, /* for a peer */
    REPORT_KINDS,
};

/* Queues a report (takes it on success). Any thread; does not block.
 *
 * errors   EBUSY (many of this kind are queued), EOS (no thread) */
tenrec_status reporter_run(struct report *r, enum report_kind kind, tenrec_error *err);

/* Writes a dump into a file of the folder, unless one was written in the last minute. `reason` is
 * for the log. */
void reporter_write(const char *folder, const char *worker, const char *reason);

/* Waits until all queued reports have run, at most some seconds. Not from a report. */
void reporter_finish(void);

/* Dumps that a process writes by itself. */

enum { DUMP_PATH_MAX = PATH_MAX, DUMP_PAUSE_S = 60 };

/* Returns true at most once in DUMP_PAUSE_S. */
bool dump_file_due(uint64_t now_ns);

/* Writes the trace of this process into a new file of mode 0600 of that folder, named after the
 * worker, the process and the time.
 *
 * ret      its path
 * errors   EOS, ENOMEM */
tenrec_status dump_file_write(const char *folder, const char *worker,
                              char ret[static DUMP_PATH_MAX], tenrec_error *err);

#endif
