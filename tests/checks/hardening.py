# SPDX-License-Identifier: Apache-2.0
"""hardening.py BUILD PLUGINS FILE ... - what is built has the marks of hardening.

Reads ELF files as they are: program headers, the dynamic section and imported names. What leaves no mark in a file is looked for among the
compiler's arguments.
"""
import glob
import json
import os
import struct
import sys

import report

BUILD, PLUGINS, FILES = sys.argv[1], sys.argv[2], sys.argv[3:]
ET_DYN = 3
PT_LOAD, PT_DYNAMIC, PT_INTERP = 1, 2, 3
PT_GNU_STACK, PT_GNU_RELRO = 0x6474e551, 0x6474e552
DT_STRTAB, DT_STRSZ, DT_FLAGS, DT_FLAGS_1 = 5, 10, 30, 0x6ffffffb
DF_BIND_NOW, DF_1_NOW, DF_1_PIE = 8, 1, 0x08000000


class Elf:
    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = f.read()
        if self.data[:5] != b"\x7fELF\x02":
            raise ValueError(f"{path}: is no 64 bit ELF file")
        self.type, = struct.unpack_from("<H", self.data, 16)
        at, = struct.unpack_from("<Q", self.data, 32)
        size, n = struct.unpack_from("<HH", self.data, 54)
        # type, flags, offset, address, bytes in the file
        self.parts = [struct.unpack_from("<IIQQxxxxxxxxQ", self.data, at + i * size)
                      for i in range(n)]
        self.dynamic = dict(self.read_dynamic())

    def part(self, kind):
        return next((p for p in self.parts if p[0] == kind), None)

    def read_dynamic(self):
        _, _, offset, _, size = self.part(PT_DYNAMIC)
        return reversed([struct.unpack_from("<QQ", self.data, offset + i)
                         for i in range(0, size, 16)])

    def names(self):
        address = self.dynamic[DT_STRTAB]
        for kind, _, offset, start, size in self.parts:
            if kind == PT_LOAD and start <= address < start + size:
                at = address - start + offset
                return set(self.data[at:at + self.dynamic[DT_STRSZ]].decode().split("\0"))
        return set()


def linking(path):
    elf = Elf(path)
    stack = elf.part(PT_GNU_STACK)
    if not stack or stack[1] & 1:
        yield f"{path}: its stack is executable"
    if not elf.part(PT_GNU_RELRO):
        yield f"{path}: has no RELRO"
    if not (elf.dynamic.get(DT_FLAGS, 0) & DF_BIND_NOW or elf.dynamic.get(DT_FLAGS_1, 0) & DF_1_NOW):
        yield f"{path}: is not linked with -z now"
    if elf.type != ET_DYN:
        yield f"{path}: is not position independent"
    if elf.part(PT_INTERP) and path.endswith("tenrec") and not elf.dynamic.get(DT_FLAGS_1, 0) & DF_1_PIE:
        yield f"{path}: is no position independent executable"


def guards(path):
    names = Elf(path).names()
    if "__stack_chk_fail" not in names:
        yield f"{path}: has no stack protector"
    if not any(n.startswith("__") and n.endswith("_chk") for n in names):
        yield f"{path}: calls no fortified function"


# Marks of both in a file need a C library that has them, too, and Debian's has not.
WITHOUT_MARK = ("-fstack-clash-protection", "-fcf-protection")


def arguments():
    with open(os.path.join(BUILD, "compile_commands.json"), encoding="utf-8") as f:
        commands = json.load(f)
    for command in commands:
        path = os.path.relpath(os.path.join(command["directory"], command["file"]), report.ROOT)
        for flag in WITHOUT_MARK if path.startswith((*report.LIBRARY, "testkit", "plugins", "tools", "bindings")) else ():
            if flag not in command["command"] and (os.uname().machine == "x86_64" or flag == WITHOUT_MARK[0]):
                yield f"{path}: is compiled without {flag}"


plugins = sorted(glob.glob(os.path.join(PLUGINS, "*.so")))
# The smallest plugins have no buffer to guard.
large = FILES + [p for p in plugins if os.path.basename(p) in ("tensorpipe.so", "faulty.so")]
report.case("hardening_files_are_linked_for_it",
            [line for path in FILES + plugins for line in linking(path)])
report.case("hardening_files_guard_their_stacks_and_buffers",
            [line for path in large for line in guards(path)])
report.case("hardening_code_is_compiled_for_it", arguments())
report.finish()
