/* SPDX-License-Identifier: Apache-2.0 */
/* parts.h - the tables through which calls reach the parts of a worker above them. */
#ifndef TENREC_RPC_PARTS_H
#define TENREC_RPC_PARTS_H

struct tenrec_worker;

/* Before the worker starts. */
void parts_connect(struct tenrec_worker *w);

#endif
