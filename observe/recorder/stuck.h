/* SPDX-License-Identifier: Apache-2.0 */
/* stuck.h - finds handlers that run, and calls that wait, for longer than `worker.stuck_after`.
 *
 * The tables of calls are looked at four times in that span, so a call costs nothing. */
#ifndef TENREC_RECORDER_STUCK_H
#define TENREC_RECORDER_STUCK_H

/* A worker has started, or has another limit. */
void stuck_watch(void);

#endif
