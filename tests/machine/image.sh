#!/bin/bash
# Packs what the test machine boots into: image.sh BUILD ROOT SOURCE PROGRAM...
#
# BUILD is the cross build: BUILD/image.cpio gets init, the PROGRAMs, the libraries that they load, busybox as a shell,
# and the tests' own data under the paths where the programs look for it. ROOT holds the unpacked arm64 packages.
set -euo pipefail
build=$1 root=$2 source=$3
shift 3
image=$build/image
rm -rf "$image"
mkdir -p "$image"/{bin,dev,etc,proc,sys,tests,tmp,lib,"$source/tests"}
cp "$build/tests/machine/machine_init" "$image/init"
cp -r "$source/tests/golden" "$image/$source/tests/"
for program in "$@"; do cp "$build/tests/$program" "$image/tests/"; done

# The compiler's own C and C++ libraries, then the packages'.
find_library() {
  local found
  found=$(aarch64-linux-gnu-g++ -print-file-name="$1")
  [ -e "$found" ] || found=$(find "$root/lib" "$root/usr/lib" -name "$1" -print -quit)
  [ -e "$found" ] || { echo "no $1 for arm64" >&2 && return 1; }
  echo "$found"
}
needed_by() {
  aarch64-linux-gnu-readelf --dynamic "$@" 2>/dev/null | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort -u
}
todo=("$image"/tests/*)
while [ ${#todo[@]} -gt 0 ]; do
  next=()
  for name in $(needed_by "${todo[@]}"); do
    [ -e "$image/lib/$name" ] && continue
    cp -L "$(find_library "$name")" "$image/lib/$name"
    next+=("$image/lib/$name")
  done
  todo=(${next[@]+"${next[@]}"})
done
aarch64-linux-gnu-strip --strip-debug "$image"/tests/*

# A system just as large as the tests look at, and as a person at its shell needs.
cp "$(find "$root/bin" "$root/usr/bin" -name busybox -print -quit)" "$image/bin/"
for tool in sh cat cp dmesg echo env false grep head id ls mount poweroff ps sleep tail taskset true vi; do
  ln -s busybox "$image/bin/$tool"
done
echo "root:x:0:0:root:/tmp:/bin/sh" | tee "$image/etc/passwd" >"$image/etc/shadow"
chmod 600 "$image/etc/shadow"
(cd "$image" && find . | LC_ALL=C sort |
  cpio --create --format=newc --owner=0:0 --reproducible --quiet) >"$build/image.cpio"
du -h "$build/image.cpio"
