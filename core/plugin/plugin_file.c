/* SPDX-License-Identifier: Apache-2.0 */
#include "core/plugin/plugin_file.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
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

/* Copies the begin of a text of a section of texts. */
static bool file_text(int fd, const ElfW(Shdr) * names, uint64_t at, char ret[PLUGIN_SYMBOL_MAX])
{
    size_t len = PLUGIN_SYMBOL_MAX - 1;

    if (at >= names->sh_size)
        return false;
    if (len > names->sh_size - at)
        len = (size_t)(names->sh_size - at);
    ret[len] = '\0';
    return file_read(fd, names->sh_offset, at, ret, len);
}

/* Finds the dynamic symbols and their names. */
static bool file_symbols(int fd, const ElfW(Ehdr) * file, ElfW(Shdr) * ret, ElfW(Shdr) * ret_names)
{
    for (size_t i = 0; file_section(fd, file, i, ret); i++)
        if (ret->sh_type == SHT_DYNSYM)
            return file_section(fd, file, ret->sh_link, ret_names);
    return false;
}

/* Reads the next defined symbol from *i on, and the begin of its name. */
static bool file_symbol(int fd, const ElfW(Shdr) * symbols, const ElfW(Shdr) * names, size_t *i,
                        ElfW(Sym) * ret, char name[PLUGIN_SYMBOL_MAX])
{
    while (*i < SYMBOLS_MAX && *i < symbols->sh_size / sizeof *ret) {
        if (!file_read(fd, symbols->sh_offset, *i * sizeof *ret, ret, sizeof *ret))
            return false;
        ++*i;
        if (ret->st_shndx != SHN_UNDEF && file_text(fd, names, ret->st_name, name))
            return true;
    }
    return false;
}

/* Finds the address at which the file would have its description. */
static bool file_description(int fd, const ElfW(Shdr) * symbols, const ElfW(Shdr) * names,
                             uint64_t *ret)
{
    char name[PLUGIN_SYMBOL_MAX];
    ElfW(Sym) s;

    for (size_t i = 0; file_symbol(fd, symbols, names, &i, &s, name);)
        if (s.st_size >= HEAD_LEN && strcmp(name, SYMBOL) == 0) {
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

void plugin_file_stray(int fd, char ret[PLUGIN_SYMBOL_MAX])
{
    static const char prefix[] = "tenrec_";
    ElfW(Ehdr) file;
    ElfW(Shdr) symbols, names;
    ElfW(Sym) s;

    if (file_header(fd, &file) && file_symbols(fd, &file, &symbols, &names))
        for (size_t i = 0; file_symbol(fd, &symbols, &names, &i, &s, ret);)
            if (ELF64_ST_BIND(s.st_info) == STB_GLOBAL && *ret && *ret != '_' &&
                ELF64_ST_VISIBILITY(s.st_other) == STV_DEFAULT &&
                strncmp(ret, prefix, sizeof prefix - 1) != 0)
                return;
    *ret = '\0';
}

/* ---- the processor --------------------------------------------------------------- */

static const char *machine_name(uint16_t machine, char room[24])
{
    static const struct {
        uint16_t machine;
        const char *name;
    } known[] = {
        { EM_X86_64, "x86-64" }, { EM_386, "x86" },     { EM_AARCH64, "aarch64" },
        { EM_ARM, "arm" },       { EM_PPC64, "ppc64" }, { EM_RISCV, "riscv" },
        { EM_S390, "s390" },
    };

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].machine == machine)
            return known[i].name;
    snprintf(room, 24, "processor %u", machine);
    return room;
}

/* The begin of the header, which is the same for all word sizes of one byte order. */
static bool machine_read(int fd, uint16_t *ret)
{
    struct {
        unsigned char ident[EI_NIDENT];
        uint16_t type, machine;
    } head;

    if (!file_read(fd, 0, 0, &head, sizeof head) || memcmp(head.ident, ELFMAG, SELFMAG) != 0)
        return false;
    *ret = head.machine;
    return true;
}

tenrec_status plugin_file_machine(int fd, tenrec_error *err)
{
    const int own_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    char room[24], own_room[24];
    uint16_t machine, own;
    const bool other =
        own_fd >= 0 && machine_read(own_fd, &own) && machine_read(fd, &machine) && machine != own;

    if (own_fd >= 0)
        close(own_fd);
    if (!other)
        return TENREC_OK;
    return tenrec_fail(err, TENREC_EPLUGIN, "is for %s, this program for %s",
                       machine_name(machine, room), machine_name(own, own_room));
}
