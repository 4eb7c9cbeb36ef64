/* SPDX-License-Identifier: Apache-2.0 */
#include "core/plugin/plugin_file.h"

#include "../testing.h"

#include <elf.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <tenrec/plugin.h>
#include <unistd.h>

static unsigned char *bytes; /* of a good plugin */
static size_t bytes_len;

static void read_plugin(void)
{
    struct stat sb;
    int fd = open(FIXTURES "/newer_minor.so", O_RDONLY | O_CLOEXEC);

    assert_true(fd >= 0 && fstat(fd, &sb) == 0);
    bytes_len = (size_t)sb.st_size;
    bytes = malloc(bytes_len);
    assert_int_equal(read(fd, bytes, bytes_len), bytes_len);
    close(fd);
}

static void free_plugin(void)
{
    free(bytes);
}

/* Reads the flags of a file with these bytes. */
static tenrec_status read_flags(const void *data, size_t len, uint32_t *ret, tenrec_error *err)
{
    int fd = memfd_create("plugin", MFD_CLOEXEC);
    tenrec_status st;

    assert_int_equal(write(fd, data, len), len);
    st = plugin_file_flags(fd, ret, err);
    close(fd);
    return st;
}

TEST_WITH(flags_are_those_of_the_description, read_plugin, free_plugin)
{
    tenrec_error err;
    uint32_t flags = 0;

    assert_status(read_flags(bytes, bytes_len, &flags, &err), &err);
    assert_int_equal(flags, TENREC_PLUGIN_UNLOADABLE);
}

TEST_WITH(flags_of_a_file_without_sections_are_unknown, read_plugin, free_plugin)
{
    tenrec_error err;
    uint32_t flags;

    memset(bytes + offsetof(Elf64_Ehdr, e_shnum), 0, sizeof(uint16_t));
    assert_int_equal(read_flags(bytes, bytes_len, &flags, &err), TENREC_EPLUGIN);
    assert_text_has(err.text, "no description that can be read before it is loaded");
}

TEST_WITH(flags_of_a_cut_file_are_unknown, read_plugin, free_plugin)
{
    Elf64_Ehdr head;
    tenrec_error err;
    uint32_t flags;

    memcpy(&head, bytes, sizeof head); /* the sections are listed at the end */
    for (size_t len = 0; len < head.e_shoff; len += len < 256 ? 1 : 97)
        assert_int_equal(read_flags(bytes, len, &flags, &err), TENREC_EPLUGIN);
}

/* Each byte of the header and of the sections, which name all other places. */
TEST_WITH(flags_of_a_changed_file_are_read_within_bounds, read_plugin, free_plugin)
{
    Elf64_Ehdr head;
    tenrec_error err;
    uint32_t flags;

    memcpy(&head, bytes, sizeof head);
    for (size_t i = 0; i < bytes_len; i++) {
        const unsigned char was = bytes[i];

        if (i >= sizeof head && i < head.e_shoff)
            continue;
        bytes[i] ^= 0xff;
        (void)read_flags(bytes, bytes_len, &flags, &err);
        bytes[i] = was;
    }
    assert_status(read_flags(bytes, bytes_len, &flags, &err), &err);
}

TEST_WITH(machine_of_another_processor_is_named, read_plugin, free_plugin)
{
    char path[] = "/tmp/tenrec-machine-XXXXXX.so";
    const uint16_t arm = EM_AARCH64;
    struct loaded l;
    tenrec_error err;
    int fd = mkstemps(path, 3);

    memcpy(bytes + offsetof(Elf64_Ehdr, e_machine), &arm, sizeof arm);
    assert_int_equal(write(fd, bytes, bytes_len), bytes_len);
    close(fd);
    assert_int_equal(loader_open(path, TENREC_PLUGIN_BACKEND, &l, &err), TENREC_EPLUGIN);
    unlink(path);
    assert_text_has(err.text, "is for aarch64, this program for ");
}

TEST(stray_symbol_is_found_and_a_good_plugin_has_none)
{
    char name[PLUGIN_SYMBOL_MAX];
    int fd = open(FIXTURES "/newer_minor.so", O_RDONLY | O_CLOEXEC);

    plugin_file_stray(fd, name);
    assert_string_equal(name, "");
    close(fd);
    fd = open(FIXTURES "/stray.so", O_RDONLY | O_CLOEXEC);
    plugin_file_stray(fd, name);
    assert_string_equal(name, "helper_of_mine");
    close(fd);
}
