#!/bin/bash
# Builds and tests perfkit in a bare Debian of another release: release.sh SUITE SOURCES SCRATCH
#
# SCRATCH/root is made by debootstrap from the mirror that this machine's own apt uses, and kept for the next run. In it:
#   1. the plain build that the README promises, with only g++, CMake, make and Abseil
#   2. the packages that the presets install
#   3. everything but the benchmarks, in C++26, warnings as errors; its unit tests, the consumers of the installed
#      package, and what else must compile
# The sources are mounted into it read-only. Mounts are made in a mount namespace, so they end with this script.
set -euo pipefail
suite=$1 sources=$2 scratch=$3
root=$scratch/root

skip() {
  echo "SKIPPED: debian.$suite: $1"
  exit 77
}

# in_root COMMAND: a shell command line in the root, in a fresh environment, but with the host's proxies.
in_root() {
  chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 TERM=dumb \
    DEBIAN_FRONTEND=noninteractive ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
    /bin/bash -c "$1"
}

# stage WHAT COMMAND: as in_root, but shows the output only if it fails.
stage() {
  echo "$1"
  in_root "$2" >"$scratch/log" 2>&1 && return
  cat "$scratch/log"
  echo "FAILED: $1"
  exit 1
}

# The mirror that the host takes Debian itself from; nothing if unknown: debootstrap has a default.
mirror() {
  apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Component: main' 2>/dev/null |
    head -n 1 || true
}

make_root() {
  rm -rf "$root"
  mkdir -p "$scratch"
  # shellcheck disable=SC2046  # no mirror is no argument
  if ! debootstrap --variant=minbase "$suite" "$root" $(mirror) >"$scratch/log" 2>&1; then
    cp "$root/debootstrap/debootstrap.log" "$scratch/debootstrap.log" 2>/dev/null || true
    skip "debootstrap cannot make it here: $(tail -n 1 "$scratch/log")"
  fi
  touch "$root/made"
}

[ "$(id -u)" = 0 ] || skip "only root can make and mount a root folder"
command -v debootstrap >/dev/null || skip "debootstrap is not installed"
[ -e "/usr/share/debootstrap/scripts/$suite" ] || skip "this debootstrap does not know the release"
if [ "${PERFKIT_IN_MOUNT_NAMESPACE:-}" != 1 ]; then
  unshare --mount true 2>/dev/null || skip "no mount namespace may be made here"
  PERFKIT_IN_MOUNT_NAMESPACE=1 exec unshare --mount --propagation private "$0" "$@"
fi

[ -e "$root/made" ] || make_root
mkdir -p "$root/perfkit"
mount --bind "$root" "$root"  # tests change the propagation of /, which must be a mount for that
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
mount --bind "$sources" "$root/perfkit"
mount -o remount,bind,ro "$root/perfkit"
cp /etc/resolv.conf "$root/etc/resolv.conf"
jobs=$((($(nproc) + 1) / 2))  # two tests run at a time

patient="-o Acquire::Retries=3 -o Acquire::http::Timeout=30"
in_root "apt-get $patient update" >"$scratch/log" 2>&1 || skip "the package lists cannot be fetched"
stage "install a compiler, CMake, make and Abseil" \
  "apt-get $patient install --yes --no-install-recommends g++ cmake make libabsl-dev"
stage "build plainly" \
  "cmake -S /perfkit -B /plain && cmake --build /plain --parallel $jobs"
stage "install what the presets install, and configure" \
  "cmake -S /perfkit -B /build -G Ninja -D PERFKIT_INSTALL_PACKAGES=ON -D PERFKIT_WERROR=ON -D PERFKIT_FAST_BUILD=ON \
         -D PERFKIT_BUILD_BENCH=OFF -D CMAKE_CXX_STANDARD=26 -D CMAKE_BUILD_TYPE=None -D 'CMAKE_CXX_FLAGS=-O1 -g1 -DNDEBUG'"
stage "find that all packages are installed" \
  "cmake -S /perfkit -B /build -D PERFKIT_INSTALL_PACKAGES=ON | grep -F 'All packages are installed'"
stage "build the tests and the examples" \
  "cmake --build /build --parallel $jobs"
stage "run the unit tests, the consumers of the installed package, and the tests of headers" \
  "ctest --test-dir /build --output-on-failure --no-tests=error --label-exclude '^heavy$' --label-regex '^(unit|consumer|compile)$'"
in_root "ctest --test-dir /build --verbose --tests-regex '^skips$'" | grep -E "SKIPPED|skipped" || true
