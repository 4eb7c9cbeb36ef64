/* SPDX-License-Identifier: Apache-2.0 */
/* templates.h - the texts that `tenrec plugin new` writes, each a list of lines up to NULL. Made
 * of files of the tree, which its tests compile. */
#ifndef TENREC_TOOLS_PLUGIN_TEMPLATES_H
#define TENREC_TOOLS_PLUGIN_TEMPLATES_H

#include <stddef.h>

extern const char *const template_backend[],
    *const template_wrapper[], *const template_store[], *const template_observer[];
extern const char *const template_backend_cc[],
    *const template_wrapper_cc[], *const template_store_cc[], *const template_observer_cc[];
extern const char *const template_makefile[], *const template_meson[], *const template_exports[];

#endif
