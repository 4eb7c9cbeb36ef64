/* SPDX-License-Identifier: Apache-2.0 */
/* secret_lookup.h - gets the secret of a run from another shell: of the launcher that serves the
 * run's store on this host. */
#ifndef TENREC_TOOLS_SECRET_LOOKUP_H
#define TENREC_TOOLS_SECRET_LOOKUP_H

#include "security/secret/secret_handover.h"

#include <tenrec/config.h>

/* Returns through `ret` whether the configuration leaves no choice: it names a file, or a mode
 * without a secret. errors: those of config_security_make */
tenrec_status secret_lookup_is_written(const struct tenrec_config *config, bool *ret,
                                       tenrec_error *err);

/* Asks the launcher of this user that serves the store of `url`. *ret is NULL and the status OK if
 * there is none, or the URL is not tcp://host:port. errors: those of secret_ask */
tenrec_status secret_lookup_ask(const char *url, uint32_t ms, struct secret **ret,
                                tenrec_error *err);

/* Announces a secret to the library in this process, as a launcher does. Before other threads
 * start: sets a variable. */
tenrec_status secret_lookup_announce(const struct secret *s, tenrec_error *err);

#endif
