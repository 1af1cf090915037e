#!/usr/bin/env bash
# Sets up what is missing on Debian 12 or Ubuntu 24.04, builds Tenon, and runs the demo or the tests:
#     ./bootstrap.sh demo
#     ./bootstrap.sh test
# Steps that are done already are not repeated. NVRTC is optional: without it nothing is compiled for GPUs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

readonly build=build/default
readonly log=build/bootstrap.log
readonly packages=(g++ cmake ninja-build llvm-19-dev libfmt-dev nlohmann-json3-dev libcli11-dev libgtest-dev
                   libxxhash-dev libtbb-dev libsleef-dev libzip-dev)

say() { printf -- '-- %s\n' "$*"; }
die() { printf 'bootstrap.sh: %s\n' "$*" >&2; exit 1; }

# Runs a command into the log; shows the end of its output if it fails.
quietly() {
  local from
  from=$(wc -l <"$log")
  printf '$ %s\n' "$*" >>"$log"
  "$@" >>"$log" 2>&1 </dev/null && return
  tail -n "+$((from + 1))" "$log" | tail -n 60 >&2
  return 1
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

apt_install() {
  if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
    printf 'missing packages, and neither root nor sudo. As root: apt-get install %s\n' "$*" >&2
    return 1
  fi
  [ "$(id -u)" = 0 ] || sudo -v || return 1
  quietly as_root apt-get update &&
    quietly as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"
}

# Those of the given packages that are not installed.
missing_packages() {
  local package
  for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || printf '%s\n' "$package"
  done
}

install_packages() {
  if ! command -v apt-get >/dev/null; then
    say "Packages: no apt-get here; going on with what is installed (needed: ${packages[*]})"
    return
  fi
  local missing
  mapfile -t missing < <(missing_packages "${packages[@]}")
  if [ "${#missing[@]}" = 0 ]; then
    say "Packages: all there"
    return
  fi
  say "Packages: installing ${missing[*]}"
  apt_install "${missing[@]}" || die "could not install packages (whole log: $log)"
}

check_tools() {
  local version
  version=$(cmake --version | sed -n 's/^cmake version //p')
  if [ "$(printf '3.25\n%s\n' "$version" | sort -V | head -n 1)" != 3.25 ]; then
    die "CMake is $version, but 3.25 or later is needed (Debian 12 and Ubuntu 24.04 have it)"
  fi
}

# Prints the first libnvrtc of an installed CUDA toolkit or of an earlier download.
find_nvrtc() {
  local place found
  if [ -n "${TENON_NVRTC_PATH:-}" ]; then
    printf '%s\n' "$TENON_NVRTC_PATH"
    return
  fi
  found=$( (/sbin/ldconfig -p 2>/dev/null || true) | sed -n 's/^.*libnvrtc\.so\.1[23] .*=> //p' | sort -V | tail -n 1)
  for place in "${CUDA_HOME:-/none}/lib64" "${CUDA_PATH:-/none}/lib64" /usr/local/cuda/lib64 /usr/local/cuda-*/lib64 \
               build/nvrtc/nvidia/*/lib; do
    [ -n "$found" ] && break
    found=$(find "$place/" -maxdepth 1 -name 'libnvrtc.so.1[23]' 2>/dev/null | sort -V | tail -n 1)
  done
  [ -n "$found" ] && realpath -s "$found"
}

# NVIDIA's own wheel, unpacked into the build folder and nowhere else. 13.0 is the release that the tests are kept with.
download_nvrtc() {
  if ! python3 -m pip --version >/dev/null 2>&1; then
    command -v apt-get >/dev/null && apt_install python3-pip || return 1
  fi
  rm -rf build/nvrtc
  quietly env PIP_ROOT_USER_ACTION=ignore python3 -m pip install --target build/nvrtc 'nvidia-cuda-nvrtc==13.0.*'
}

provide_nvrtc() {
  local found
  if ! found=$(find_nvrtc); then
    say "NVRTC: no CUDA toolkit found; downloading NVIDIA's wheel into build/nvrtc"
    download_nvrtc 2>/dev/null || true
    found=$(find_nvrtc) || found=
  fi
  if [ -n "$found" ]; then
    say "NVRTC: $found"
    export TENON_NVRTC_PATH=$found
  else
    say "NVRTC: none, and it could not be downloaded (see $log). Skipped: compiling CUDA to PTX and cubin, and running on a GPU"
  fi
}

# As many compilers as there are cores, and 2 GiB of free memory for each.
jobs() {
  local cores memory
  cores=$(nproc)
  memory=$(awk '/^MemAvailable:/ { print int($2 / 2 / 1024 / 1024) }' /proc/meminfo)
  [ "$memory" -ge 1 ] || memory=1
  printf '%s\n' $((memory < cores ? memory : cores))
}

build() {
  if command -v ccache >/dev/null; then export CMAKE_CXX_COMPILER_LAUNCHER=ccache; fi
  say "Configuring $build"
  quietly cmake --preset default || die "configuring failed (whole log: $log)"
  say "Building with $(jobs) jobs"
  quietly cmake --build --preset default -j "$(jobs)" "$@" || die "the build failed (whole log: $log)"
}

set_up() {
  mkdir -p build
  : >"$log"
  install_packages
  check_tools
  provide_nvrtc
}

case "${1:-}" in
  demo)
    set_up
    build --target tenon_cli
    exec examples/demo.sh "$build"
    ;;
  test)
    set_up
    build
    say "Testing"
    exec ctest --preset default -j "$(jobs)"
    ;;
  *)
    printf 'usage: ./bootstrap.sh demo | test\n' >&2
    exit 2
    ;;
esac
