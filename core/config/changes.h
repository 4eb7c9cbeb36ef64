/* SPDX-License-Identifier: Apache-2.0 */
/* changes.h - settings for a running worker, sorted by what they concern. */
#ifndef TENREC_CONFIG_CHANGES_H
#define TENREC_CONFIG_CHANGES_H

#include "core/config/node.h"

#include <tenrec/observe.h>

struct config_changes {
    const char *log_level; /* borrowed from the settings; NULL: none */
    struct node *worker;   /* a map of values; owns */
    struct node *observe;  /* likewise */
    struct node *backends; /* a map of such maps, by the names of the backends; owns */
};

/* Checks the keys as far as that needs no table of options.
 *
 * setting  its values are borrowed until config_changes_finish
 * errors   ECONFIG, EINVAL (NULL, or a key given twice), EUNSUPPORTED, ENOMEM;
 * config_changes_finish is due all the same */
tenrec_status config_changes_sort(const struct tenrec_setting *setting, size_t n,
                                  struct config_changes *ret, tenrec_error *err);
void config_changes_finish(struct config_changes *c);

#endif
