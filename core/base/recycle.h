/* SPDX-License-Identifier: Apache-2.0 */
/* recycle.h - whether freed blocks are kept for the next use.
 *
 * Off under AddressSanitizer, from which recycling would hide a use after free,
 * and with -DRECYCLE=0, for valgrind. */
#ifndef TENREC_BASE_RECYCLE_H
#define TENREC_BASE_RECYCLE_H

#if defined(__SANITIZE_ADDRESS__)
#define RECYCLE 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RECYCLE 0
#endif
#endif
#ifndef RECYCLE
#define RECYCLE 1
#endif

#endif
