/* SPDX-License-Identifier: Apache-2.0 */
/* setting.h - the store of a group, and the configuration of each worker. */
#ifndef TENREC_TESTKIT_SETTING_H
#define TENREC_TESTKIT_SETTING_H

#include <tenrec/testkit.h>

enum { SETTING_PATH_MAX = 256 };

struct setting {
    struct tenrec_test_options o;      /* complete: no zero stands for a default */
    char group[64];                    /* differs from that of every other group */
    char dir[SETTING_PATH_MAX];        /* temporary; "" for threads */
    char store[SETTING_PATH_MAX + 64]; /* URL */
};

/* Checks and completes the options, and makes the folder.
 *
 * errors   EINVAL, EOS
 */
tenrec_status setting_init(struct setting *s, const struct tenrec_test_options *options,
                           tenrec_error *err);

/* Removes the folder with its files. */
void setting_finish(struct setting *s);

/* Makes the configuration of the worker of `rank`.
 *
 * ret      the caller owns it
 * errors   ECONFIG, EOS, ENOMEM, EINVAL (a list entry without '=')
 */
tenrec_status setting_config(const struct setting *s, int32_t rank, struct tenrec_config **ret,
                             tenrec_error *err);

#endif
