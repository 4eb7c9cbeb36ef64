/* SPDX-License-Identifier: Apache-2.0 */
/* error.c - the one copy of the functions of tenrec/error.h that all of libtenrec calls. */
#undef TENREC_ERROR_INLINE
#define TENREC_ERROR_INLINE extern inline

#include <tenrec/error.h>
