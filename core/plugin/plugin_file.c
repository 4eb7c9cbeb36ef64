/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/plugin_file.h"

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <tenrec/plugin.h>
#include <unistd.h>

#define SYMBOL "tenrec_plugin"

enum { SYMBOLS_MAX = 1 << 16 };

/* The part of struct tenrec_plugin that holds no pointer: no relocation changes these bytes. */
#define HEAD_LEN offsetof(struct tenrec_plugin, reserved0)

/* Reads `len` bytes at `base` + `delta`. Returns false where the file has none. */
static bool file_read(int fd, uint64_t base, uint64_t delta, void *to, size_t len)
{
    return base <= INT64_MAX && delta <= INT64_MAX - base &&
           pread(fd, to, len, (off_t)(base + delta)) == (ssize_t)len;
}

static bool file_header(int fd, ElfW(Ehdr) * ret)
{
    const union {
        uint16_t number;
        unsigned char first;
    } order = { .number = 1 };

    return file_read(fd, 0, 0, ret, sizeof *ret) && memcmp(ret->e_ident, ELFMAG, SELFMAG) == 0 &&
           ret->e_type == ET_DYN &&
           ret->e_ident[EI_CLASS] == (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) &&
           ret->e_ident[EI_DATA] == (order.first ? ELFDATA2LSB : ELFDATA2MSB) &&
           ret->e_phentsize == sizeof(ElfW(Phdr)) && ret->e_shentsize == sizeof(ElfW(Shdr));
}

static bool file_section(int fd, const ElfW(Ehdr) * file, size_t i, ElfW(Shdr) * ret)
{
    return i < file->e_shnum && file_read(fd, file->e_shoff, i * sizeof *ret, ret, sizeof *ret);
}

/* Finds the dynamic symbols and their names. */
static bool file_symbols(int fd, const ElfW(Ehdr) * file, ElfW(Shdr) * ret, ElfW(Shdr) * ret_names)
{
    for (size_t i = 0; file_section(fd, file, i, ret); i++)
        if (ret->sh_type == SHT_DYNSYM)
            return file_section(fd, file, ret->sh_link, ret_names);
    return false;
}

/* Finds the address at which the file would have its description. */
static bool file_description(int fd, const ElfW(Shdr) * symbols, const ElfW(Shdr) * names,
                             uint64_t *ret)
{
    ElfW(Sym) s;
    char name[sizeof SYMBOL];

    for (size_t i = 0; i < SYMBOLS_MAX && i < symbols->sh_size / sizeof s; i++) {
        if (!file_read(fd, symbols->sh_offset, i * sizeof s, &s, sizeof s))
            return false;
        if (s.st_shndx == SHN_UNDEF || s.st_size < HEAD_LEN ||
            !file_read(fd, names->sh_offset, s.st_name, name, sizeof name) ||
            memcmp(name, SYMBOL, sizeof name) != 0)
            continue;
        *ret = s.st_value;
        return true;
    }
    return false;
}

/* Reads what the file has for `address`. */
static bool file_contents(int fd, const ElfW(Ehdr) * file, uint64_t address, void *to, size_t len)
{
    ElfW(Phdr) p;

    for (size_t i = 0; i < file->e_phnum; i++) {
        if (!file_read(fd, file->e_phoff, i * sizeof p, &p, sizeof p))
            return false;
        if (p.p_type == PT_LOAD && address >= p.p_vaddr && p.p_filesz >= len &&
            address - p.p_vaddr <= p.p_filesz - len)
            return file_read(fd, p.p_offset, address - p.p_vaddr, to, len);
    }
    return false;
}

tenrec_status plugin_file_flags(int fd, uint32_t *ret, tenrec_error *err)
{
    struct tenrec_plugin p = { 0 };
    ElfW(Ehdr) file;
    ElfW(Shdr) symbols, names;
    uint64_t address;

    if (!file_header(fd, &file))
        return tenrec_fail(err, TENREC_EPLUGIN, "is no shared object for this processor");
    if (!file_symbols(fd, &file, &symbols, &names) ||
        !file_description(fd, &symbols, &names, &address) ||
        !file_contents(fd, &file, address, &p, HEAD_LEN) || p.magic != TENREC_PLUGIN_MAGIC)
        return tenrec_fail(err, TENREC_EPLUGIN,
                           "has no description that can be read before it is "
                           "loaded");
    *ret = p.flags;
    return TENREC_OK;
}
