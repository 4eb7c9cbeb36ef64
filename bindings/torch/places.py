# SPDX-License-Identifier: Apache-2.0
"""places.py - prints for meson where the torch of this Python has its headers ("system": in the system's
folders) and libraries, the C++ ABI it was built with, and the C++ standard of extensions of it; a line each."""
import inspect
import os
import re

import torch
from torch.utils import cpp_extension

# The standard is written only in the flags that torch gives to a compiler.
flags = re.findall(r"-std=c\+\+(\d\d)", inspect.getsource(cpp_extension))
folder = os.path.dirname(torch.__file__)
headers = os.path.join(folder, "include")
print(headers if os.path.isdir(headers) else "system")
print(os.path.join(folder, "lib"))
print(int(torch._C._GLIBCXX_USE_CXX11_ABI))
print("c++" + max(flags + ["17"]))  # ours is at least C++17
