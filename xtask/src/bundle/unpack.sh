#!/usr/bin/env bash
# Unpacks the programs into the folder bin, unless that has been done. The other scripts call it.
set -uo pipefail

cd "$(dirname "$0")" || exit 1
archive=programs.tar.xz
if [[ ! -f $archive || (-f bin/.unpacked && ! $archive -nt bin/.unpacked) ]]; then exit 0; fi
rm -rf bin
if command -v xz >/dev/null; then
    xz --decompress --stdout "$archive" | tar --extract
elif command -v python3 >/dev/null; then
    python3 -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall()' "$archive"
else
    echo "cannot unpack $archive: there is neither xz nor python3 on PATH" >&2
    exit 1
fi || { rm -rf bin; echo "cannot unpack $archive" >&2; exit 1; }
touch bin/.unpacked
