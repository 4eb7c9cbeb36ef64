/* SPDX-License-Identifier: Apache-2.0 */
/* texts.h - files of the tree as lists of lines up to NULL, made by plugin/embed.py. */
#ifndef TENREC_TOOLS_CONFORMANCE_TEXTS_H
#define TENREC_TOOLS_CONFORMANCE_TEXTS_H

#include <stddef.h>

extern const char *const text_rules[]; /* docs/plugin-rules.md */
extern const char *const text_cases[]; /* the sources of all cases, one after the other */

#endif
