/* SPDX-License-Identifier: Apache-2.0 */
/* forked.h - the child of a fork that was made in a function or callback of the program. */
#ifndef TENREC_PYTHON_FORKED_H
#define TENREC_PYTHON_FORKED_H

#include "python.h"

#include <stdbool.h>

/* From now on forks are counted. */
void forked_watch(void);

/* The number of forks between this process and the first that imported the package. */
unsigned forked_count(void);

/* After a call into Python, with the GIL; `before`: forked_count before the call. Returns false in
 * the process that made the call. In a child it returns true, and the caller returns to Tenrec,
 * which ends the thread; but if the call has raised an exception, it ends the child, with the
 * status of a SystemExit, or with 1 and a traceback. */
bool forked_since(unsigned before);

#endif
