/* SPDX-License-Identifier: Apache-2.0 */
/* tenrec/version.h - the version that a program is compiled with.
 *
 * tenrec_version_number() says which library it runs with. The build takes the version of the
 * whole tree from the three numbers below (script/version).
 */
#ifndef TENREC_VERSION_H
#define TENREC_VERSION_H

#define TENREC_VERSION_MAJOR 0
#define TENREC_VERSION_MINOR 1
#define TENREC_VERSION_PATCH 0

/* As one number, as tenrec_version_number() gives it. */
#define TENREC_VERSION_MAKE(major, minor, patch) ((major)*10000 + (minor)*100 + (patch))
#define TENREC_VERSION                                                                             \
    TENREC_VERSION_MAKE(TENREC_VERSION_MAJOR, TENREC_VERSION_MINOR, TENREC_VERSION_PATCH)

/* As a text, as tenrec_version_text() gives it: "1.2.3". */
#define TENREC_VERSION_TEXT_OF(major, minor, patch) #major "." #minor "." #patch
#define TENREC_VERSION_TEXT_EXPANDED(major, minor, patch)                                          \
    TENREC_VERSION_TEXT_OF(major, minor, patch)
#define TENREC_VERSION_TEXT                                                                        \
    TENREC_VERSION_TEXT_EXPANDED(TENREC_VERSION_MAJOR, TENREC_VERSION_MINOR, TENREC_VERSION_PATCH)

/* For #if: is it this version, or a later one? */
#define TENREC_VERSION_AT_LEAST(major, minor, patch)                                               \
    (TENREC_VERSION >= TENREC_VERSION_MAKE(major, minor, patch))

#endif
