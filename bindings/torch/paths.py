# SPDX-License-Identifier: Apache-2.0
"""paths.py - prints for meson where the torch of this Python has its headers ("system": in the system's
folders) and libraries, the C++ ABI it was built with, the C++ standard of extensions of it, and its version; a line each."""
import importlib.util
import os
import re

import torch

# The standard is written only in the flags that torch gives to a compiler. The module is read, for
# its import needs setuptools.
with open(importlib.util.find_spec("torch.utils.cpp_extension").origin, encoding="utf-8") as source:
    flags = re.findall(r"-std=c\+\+(\d\d)", source.read())
folder = os.path.dirname(torch.__file__)
headers = os.path.join(folder, "include")
print(headers if os.path.isdir(headers) else "system")
print(os.path.join(folder, "lib"))
print(int(torch._C._GLIBCXX_USE_CXX11_ABI))
print("c++" + max(flags + ["17"]))  # ours is at least C++17
print(torch.__version__.split("+")[0])  # what it computes on is not in the headers
