/* SPDX-License-Identifier: Apache-2.0 */
/* heap_use.h - how much memory of the allocator is in use. */
#ifndef TENREC_TOOLS_CONFORMANCE_HEAP_USE_H
#define TENREC_TOOLS_CONFORMANCE_HEAP_USE_H

#include <stddef.h>

/* Bytes that are allocated; those in caches of the allocator may count. Under a sanitizer a number
 * that does not change. */
size_t heap_use(void);

#endif
