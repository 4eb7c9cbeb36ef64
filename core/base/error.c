/* SPDX-License-Identifier: Apache-2.0 */
/* error.c - the external definitions of the inline functions of tenrec/error.h, which no library
 * exports. */
#undef TENREC_ERROR_INLINE
#define TENREC_ERROR_INLINE __attribute__((visibility("hidden"))) extern inline

#include <tenrec/error.h>
