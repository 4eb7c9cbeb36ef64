/* SPDX-License-Identifier: Apache-2.0 */
/* page_end.h - objects of a plugin that end with their page: a read of more than they have faults.
 */
#ifndef TESTS_PLUGIN_PAGE_END_H
#define TESTS_PLUGIN_PAGE_END_H

#include <sys/mman.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PAGE_END_ASAN
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define PAGE_END_ASAN
#endif
#ifdef PAGE_END_ASAN
#include <sanitizer/asan_interface.h>
#endif

#define PAGE_END 65536 /* a multiple of the page size of every machine */

/* The type of such an object, and of what surrounds it. */
#define PAGE_END_STRUCT(type)                                                                      \
    struct {                                                                                       \
        char before[PAGE_END - sizeof(type)];                                                      \
        type object;                                                                               \
        char behind[PAGE_END];                                                                     \
    }
#define PAGE_END_OBJECT __attribute__((aligned(PAGE_END), used)) static

/* Protects the memory behind an object when the plugin is loaded, before the core reads it. The
 * leak check of ASan reads all memory of a plugin, so there only the program's reads fault. */
#ifdef PAGE_END_ASAN
#define PAGE_END_FORBID(p) (ASAN_POISON_MEMORY_REGION(p, PAGE_END), 0)
#else
#define PAGE_END_FORBID(p) mprotect(p, PAGE_END, PROT_NONE)
#endif
#define PAGE_END_PROTECT(name)                                                                     \
    __attribute__((constructor)) static void name##_protect(void)                                  \
    {                                                                                              \
        if (PAGE_END_FORBID(name.behind))                                                          \
            __builtin_trap();                                                                      \
    }

/* Exports the object of `name`, which has `bytes` bytes (both literal), as tenrec_plugin. */
#define PAGE_END_EXPORT(name, bytes)                                                               \
    __asm__(".globl tenrec_plugin\n.set tenrec_plugin, " #name " + 65536 - " #bytes);

#endif
