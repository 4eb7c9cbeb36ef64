/* SPDX-License-Identifier: Apache-2.0 */
/* recorder.h - agents that write down what happens to them. */
#ifndef TENREC_TESTS_RECORDER_H
#define TENREC_TESTS_RECORDER_H

#include "core/backend/backend.h"

/* The behaviour of a recording agent; the options of its layer. */
struct recorder {
    const char *tag; /* "a": events are "a.init", "a.start", ... */
    const struct tenrec_agent_ops *ops;
    bool fail_init, fail_start;
    bool wraps_nothing;
};

/* All ops; those of a wrapper go on to the next agent. */
extern const struct tenrec_agent_ops recorder_ops;
/* Only destroy. */
extern const struct tenrec_agent_ops recorder_no_ops;

/* Backends "recorder" (wraps) and "recorder_wire" (does not), registered. */
struct plugin *recorder_backend(bool wraps);

/* The events since the last call, with spaces between. */
const char *recorder_events(void);
void recorder_note(const char *tag, const char *event);

#endif
