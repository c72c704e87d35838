#!/bin/bash
# Builds and tests perfkit in a bare Debian of another release: release.sh SUITE SOURCES SCRATCH
#
# In the root of root.sh:
#   1. the plain build that the README promises, with only g++, CMake, make and Abseil
#   2. the packages that the presets install
#   3. everything but the benchmarks, in C++26, warnings as errors; its unit tests, the consumers of the installed
#      package, and what else must compile
set -euo pipefail
suite=$1 sources=$2 scratch=$3
source "$(dirname "$0")/root.sh"

jobs=$((($(nproc) + 1) / 2))  # two tests run at a time
install g++ cmake make libabsl-dev
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
