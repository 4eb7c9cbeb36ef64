/* SPDX-License-Identifier: Apache-2.0 */
/* exporter_choice.h - the plugin of an exporter, loaded and with its options filled. Opens nothing.
 */
#ifndef TENREC_METRICS_EXPORTER_CHOICE_H
#define TENREC_METRICS_EXPORTER_CHOICE_H

#include "core/config/node.h"

#include <stdatomic.h>

#include <tenrec/exporter_plugin.h>

struct tenrec_config;

struct exporter_choice {
    atomic_uint refs;
    struct backend *backend; /* shares (counted) */
    void *options;           /* owns */
    char name[64];           /* of the entry */
};

/* Loads what an option of `observe:` names.
 *
 * place    of that option
 * config   may be changed or dropped afterwards
 * ret      shares (counted): exporter_choice_drop
 * errors   with the place: ECONFIG (also of the plugin's construct), EPLUGIN, EABI, EEXIST, ENOMEM
 */
tenrec_status exporter_choice_load(const struct tenrec_config *config, const char *name,
                                   const struct place *place, struct exporter_choice **ret,
                                   tenrec_error *err);
struct exporter_choice *exporter_choice_share(struct exporter_choice *c);
void exporter_choice_drop(struct exporter_choice *c); /* NULL is fine */

#endif
