# SPDX-License-Identifier: Apache-2.0
"""install_folder.py PREFIX - prints for meson the folder in which an installation to PREFIX has the packages of this
Python, and whether this Python searches it by itself (True, False); a line each.

It is the one below PREFIX that this Python searches, else that of its virtual environment, else one for PYTHONPATH.
"""
import os
import site
import sys


def is_library_of(prefix, folder):
    """/usr/local/lib is also below /usr, and belongs to another prefix."""
    return os.path.relpath(folder, prefix).startswith("lib")


def install_folder(prefix):
    searched = site.getsitepackages()
    ours = [folder for folder in searched if is_library_of(prefix, folder)]
    if not ours and sys.prefix != sys.base_prefix:
        ours = searched
    return ours[0] if ours else os.path.join(prefix, "lib", "python{}.{}".format(*sys.version_info), os.path.basename(searched[0]))


def main(prefix):
    folder = install_folder(prefix)
    print(folder, folder in site.getsitepackages(), sep="\n")


main(sys.argv[1])
