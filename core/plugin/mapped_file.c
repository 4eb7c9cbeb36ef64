/* SPDX-License-Identifier: Apache-2.0 */
#include "core/plugin/plugin_file.h"

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct mapped_search {
    uintptr_t inside;
    bool program; /* the next file is the program itself, which is listed first */
    struct mapped_file *ret;
};

/* Reads the notes of a mapped segment, whose parts are padded to `align` bytes. */
static void mapped_read_notes(const char *at, size_t left, size_t align, char buf[BUILD_ID_MAX])
{
    ElfW(Nhdr) note;

    while (left >= sizeof note) {
        memcpy(&note, at, sizeof note);
        const size_t name = (note.n_namesz + align - 1) & ~(align - 1);
        const size_t desc = (note.n_descsz + align - 1) & ~(align - 1);
        const unsigned char *id = (const unsigned char *)at + sizeof note + name;

        if (name > left - sizeof note || desc > left - sizeof note - name)
            return;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof ELF_NOTE_GNU &&
            memcmp(at + sizeof note, ELF_NOTE_GNU, sizeof ELF_NOTE_GNU) == 0) {
            for (size_t i = 0; i < note.n_descsz && 2 * i + 2 < BUILD_ID_MAX; i++)
                snprintf(buf + 2 * i, 3, "%02x", id[i]);
            return;
        }
        at += sizeof note + name + desc;
        left -= sizeof note + name + desc;
    }
}

static bool mapped_holds(const struct dl_phdr_info *file, uintptr_t address)
{
    for (size_t i = 0; i < file->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &file->dlpi_phdr[i];

        if (segment->p_type == PT_LOAD &&
            address - (file->dlpi_addr + segment->p_vaddr) < segment->p_memsz)
            return true;
    }
    return false;
}

static int mapped_on_file(struct dl_phdr_info *file, size_t size, void *arg)
{
    struct mapped_search *search = arg;
    const bool program = search->program;

    (void)size;
    search->program = false;
    if (!mapped_holds(file, search->inside))
        return 0;
    search->ret->path = program ? "" : file->dlpi_name; /* of the program musl tells argv[0] */
    for (size_t i = 0; i < file->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &file->dlpi_phdr[i];

        if (segment->p_type == PT_NOTE)
            mapped_read_notes((const char *)(file->dlpi_addr + segment->p_vaddr), segment->p_memsz,
                              segment->p_align == 8 ? 8 : 4, search->ret->build_id);
    }
    return 1;
}

void mapped_file_find(const void *inside, struct mapped_file *ret)
{
    struct mapped_search search = { (uintptr_t)inside, true, ret };

    *ret = (struct mapped_file){ .path = "" };
    dl_iterate_phdr(mapped_on_file, &search);
}
