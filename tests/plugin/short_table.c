/* SPDX-License-Identifier: Apache-2.0 */
#include "short_table.h"

#include "../testing.h"

#include <sys/mman.h>
#include <unistd.h>

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

void *short_table_new(const void *table, uint32_t size)
{
    const size_t page = page_bytes();
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
         *copy;

    assert_true(pages != MAP_FAILED);
    assert_true(size >= sizeof size && size <= page);
    copy = pages + page - size;
    memcpy(copy, table, size);
    memcpy(copy, &size, sizeof size);
    assert_int_equal(mprotect(pages, page, PROT_READ), 0);
    assert_int_equal(mprotect(pages + page, page, PROT_NONE), 0);
    return copy;
}

void short_table_drop(void *copy)
{
    const size_t page = page_bytes();

    if (copy)
        munmap((char *)((uintptr_t)copy / page * page), 2 * page);
}
