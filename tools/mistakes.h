/* SPDX-License-Identifier: Apache-2.0 */
/* mistakes.h - all mistakes of a configuration, not only the first. */
#ifndef TENREC_TOOLS_MISTAKES_H
#define TENREC_TOOLS_MISTAKES_H

#include "core/config/config.h"

/* Receives each mistake. */
struct mistakes {
    void (*tell)(void *arg, const tenrec_error *err);
    void *arg;
};

/* For config_load_all: tells a struct mistakes of each mistake that can be left out. */
struct config_mistakes mistakes_of_config(struct mistakes *m);

/* Leaves out the option, or the variable, that an error about this entry names; `layer` stays
 * valid. Returns false if the error names none. */
bool mistakes_leave_out_option(struct tenrec_config *config, const struct config_layer *layer,
                               const tenrec_error *err);

#endif
