/* SPDX-License-Identifier: Apache-2.0 */
/* Exports nothing itself, but uses a plugin: a plain dlsym would find all three
 * symbols in what it depends on. */
#include <tenrec/plugin.h>

const void *leans_on(void);

const void *leans_on(void)
{
    return &tenrec_plugin;
}
