#!/bin/bash
# Runs the README's two commands as its reader does: readme.sh SUITE SOURCES SCRATCH
#
# In the root of root.sh, which has g++ and CMake and nothing else that perfkit needs, and in a new copy of the sources: what
# is installed on the machine of this test, built in its sources, or kept by an earlier run, is not there.
set -euo pipefail
suite=$1 sources=$2 scratch=$3
source "$(dirname "$0")/root.sh"

install g++ cmake
stage "copy the sources" \
  "mkdir /srv/perfkit && tar --create --directory=/perfkit --exclude=./build . | tar --extract --directory=/srv/perfkit"
stage "cmake --workflow --preset demo" "cd /srv/perfkit && cmake --workflow --preset demo"
stage "cmake --workflow --preset test" "cd /srv/perfkit && cmake --workflow --preset test"
tail -n 40 "$scratch/log"
