/* SPDX-License-Identifier: Apache-2.0 */
/* signal_name.h - names of signals; not every C library has sigabbrev_np. */
#ifndef TENREC_TOOLS_RUN_SIGNAL_NAME_H
#define TENREC_TOOLS_RUN_SIGNAL_NAME_H

enum { SIGNAL_NAME_MAX = 24 };

/* Writes "SIGTERM", or "signal 40" for one without a name, and returns `buf`. */
const char *signal_name(int sig, char buf[SIGNAL_NAME_MAX]);

#endif
