/* SPDX-License-Identifier: Apache-2.0 */
/* known_variables.h - the TENREC_ variables that something reads; for config only. */
#ifndef TENREC_CONFIG_KNOWN_VARIABLES_H
#define TENREC_CONFIG_KNOWN_VARIABLES_H

#include <tenrec/config.h>

/* Warns of each variable of the configuration that nothing reads, with the nearest name. */
void known_variables_warn(const struct tenrec_config *config);

#endif
