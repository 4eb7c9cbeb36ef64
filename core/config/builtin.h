/* SPDX-License-Identifier: Apache-2.0 */
/* builtin.h - the text of config/default.yaml, embedded by the build. */
#ifndef TENREC_CONFIG_BUILTIN_H
#define TENREC_CONFIG_BUILTIN_H

#include <stddef.h>

extern const char builtin_yaml[]; /* ends with a NUL */
extern const size_t builtin_yaml_len;

#endif
