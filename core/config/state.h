/* SPDX-License-Identifier: Apache-2.0 */
/* state.h - the struct of a configuration; for the files of config only. */
#ifndef TENREC_CONFIG_STATE_H
#define TENREC_CONFIG_STATE_H

#include "core/config/config.h"
#include "core/config/environment.h"

struct tenrec_config {
    char *name;             /* of the file; places in `root` borrow it */
    struct node *root;      /* default, file and code, merged; a map */
    struct environment env; /* applied when a value is read and its type is known */
};

#endif
