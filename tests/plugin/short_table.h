/* SPDX-License-Identifier: Apache-2.0 */
/* short_table.h - the first bytes of a table of services, as an older core has it. */
#ifndef TESTS_PLUGIN_SHORT_TABLE_H
#define TESTS_PLUGIN_SHORT_TABLE_H

#include <stdint.h>

/* A copy of the first `size` bytes of `table`, which begins with its size and says this one. The
 * copy ends with its page, and a read behind it faults.
 *
 * returns  owns: short_table_drop */
void *short_table_new(const void *table, uint32_t size);
void short_table_drop(void *copy); /* NULL is fine */

#endif
