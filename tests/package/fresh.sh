#!/usr/bin/env bash
# Builds and runs the README's program in a system that has nothing yet, with the packages that docs/install.md names:
#     debootstrap --variant=minbase bookworm ROOT && tests/package/fresh.sh ROOT PREFIX
# ROOT: the root folder of a fresh Debian 12 or Ubuntu 24.04 (its apt sources need universe, and noble-updates for LLVM
# 19). PREFIX: where Tenon was installed, built on the same release, or on Debian 12 for both.
# Run as root, since it runs chroot.
set -euo pipefail
root=$(realpath "$1")
prefix=$(realpath "$2")
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# The first fenced block of a language in the README.
block() { sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/{//!p;/^\`\`\`\$/q}" README.md; }

rm -rf "$root/root/tenon" "$root/root/hello"
mkdir -p "$root/root/hello"
cp -r "$prefix" "$root/root/tenon"
block cpp >"$root/root/hello/main.cpp"
block cmake >"$root/root/hello/CMakeLists.txt"
{
  printf 'set -eux\nexport HOME=/root DEBIAN_FRONTEND=noninteractive\napt-get update\n'
  sed -n 's/^    \(apt-get install\) \(g++.*\)/\1 -y --no-install-recommends \2/p' docs/install.md
  sed -n 's/^    \(apt-get install\) \(libfmt9.*\)/\1 --simulate \2/p' docs/install.md  # the first list has brought them
  printf 'cd /root/hello\n'
  block sh | grep -v '^cmake --install'
  printf './build/hello\n/root/tenon/bin/tenon doctor\n'
} >"$root/root/hello/steps.sh"
chroot "$root" /bin/sh /root/hello/steps.sh
