/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/heap_use.h"

#include <malloc.h>

size_t heap_use(void)
{
    const struct mallinfo2 m = mallinfo2();

    return m.uordblks + m.hblkhd;
}
