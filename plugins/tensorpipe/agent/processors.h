/* SPDX-License-Identifier: Apache-2.0 */
/* processors.h - how many threads of this process can run at once. */
#ifndef TENSORPIPE_PROCESSORS_H
#define TENSORPIPE_PROCESSORS_H

/* The processors that this process may use: its affinity, and the quotas of its cgroup (v2) and of
 * those above. At least 1. */
unsigned processors_usable(void);

/* The quota of the cgroup `group` ("/a/b") below the folder `mount`, and of those above, rounded up
 * to processors. UINT_MAX: none. */
unsigned processors_quota(const char *mount, const char *group);

#endif
