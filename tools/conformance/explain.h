/* SPDX-License-Identifier: Apache-2.0 */
/* explain.h - what a case does, for the author of a plugin without the source of this command. */
#ifndef TENREC_TOOLS_CONFORMANCE_EXPLAIN_H
#define TENREC_TOOLS_CONFORMANCE_EXPLAIN_H

#include "conformance/case.h"

/* Prints the rules that the case checks, and its source. */
void explain_case(const struct conformance_case *c);

#endif
