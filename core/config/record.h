/* SPDX-License-Identifier: Apache-2.0 */
/* record.h - lists of maps, each with the keys of one table. */
#ifndef TENREC_CONFIG_RECORD_H
#define TENREC_CONFIG_RECORD_H

#include "core/config/options.h"

/* The table of a record as a plugin's table, for the functions of options.h. */
struct tenrec_plugin record_table(const struct tenrec_option_record *record);

/* Reads the list of maps at `node` as value_read does; `ret` is the field of the options
 * struct. */
tenrec_status record_read_all(const struct tenrec_option *opt, const struct node *node,
                              const char *context, struct arena *arena,
                              struct tenrec_option_records *ret, tenrec_error *err);

#endif
