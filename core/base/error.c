/* SPDX-License-Identifier: Apache-2.0 */
/* error.c - the external definitions of the inline functions of tenrec/error.h. */
#undef TENREC_ERROR_INLINE
#define TENREC_ERROR_INLINE extern inline

#include <tenrec/error.h>
