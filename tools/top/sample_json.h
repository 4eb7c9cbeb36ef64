/* SPDX-License-Identifier: Apache-2.0 */
/* sample_json.h - a sample and its rates as one JSON object (docs/observe.md). */
#ifndef TENREC_TOOLS_TOP_SAMPLE_JSON_H
#define TENREC_TOOLS_TOP_SAMPLE_JSON_H

#include "top/sample.h"

/* Prints one line on stdout. `before` may be NULL. Returns false without memory, or if stdout
 * fails. */
bool sample_json_print(const struct sample *before, const struct sample *now);

#endif
