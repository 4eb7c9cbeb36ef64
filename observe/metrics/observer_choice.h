/* SPDX-License-Identifier: Apache-2.0 */
/* observer_choice.h - the plugin of an observer, loaded and with its options filled. Opens nothing.
 */
#ifndef TENREC_METRICS_OBSERVER_CHOICE_H
#define TENREC_METRICS_OBSERVER_CHOICE_H

#include "core/config/node.h"

#include <stdatomic.h>

#include <tenrec/observer_plugin.h>

struct tenrec_config;

struct observer_choice {
    atomic_uint refs;
    struct backend *backend; /* shares (counted) */
    void *options;           /* owns */
    char name[64];           /* of the entry */
};

/* Loads what an option of `observe:` names.
 *
 * place    of that option
 * config   may be changed or dropped afterwards
 * ret      shares (counted): observer_choice_drop
 * errors   with the place: ECONFIG (also of the plugin's construct), EPLUGIN, EABI, EEXIST, ENOMEM
 */
tenrec_status observer_choice_load(const struct tenrec_config *config, const char *name,
                                   const struct place *place, struct observer_choice **ret,
                                   tenrec_error *err);
struct observer_choice *observer_choice_share(struct observer_choice *c);
void observer_choice_drop(struct observer_choice *c); /* NULL is fine */

#endif
