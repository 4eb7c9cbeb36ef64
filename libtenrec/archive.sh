#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# archive.sh CORE ARCHIVE CC [ARG ...] - makes the installed static library of the core's own, with
# the API as its only global symbols.
set -eu
core=$1 archive=$2
shift 2
folder=$(mktemp -d "$archive.XXXXXX")
trap 'rm -r "$folder"' EXIT
"$@" -r -nostdlib -Wl,--whole-archive "$core" -o "$folder/tenrec.o"
objcopy --localize-hidden --wildcard --keep-global-symbol='tenrec_*' "$folder/tenrec.o"
rm -f "$archive"
ar rcsD "$archive" "$folder/tenrec.o"
