# SPDX-License-Identifier: Apache-2.0
"""Writes a text file as a C array: embed.py INPUT OUTPUT NAME."""
import sys

data = open(sys.argv[1], 'rb').read()
with open(sys.argv[2], 'w') as out:
    out.write(f'#include "core/config/state.h"\n\nconst char {sys.argv[3]}[] = {{\n')
    for i in range(0, len(data), 16):
        out.write('    ' + ' '.join(f'0x{b:02x},' for b in data[i:i + 16]) + '\n')
    out.write(f'    0x00\n}};\nconst size_t {sys.argv[3]}_len = {len(data)};\n')
