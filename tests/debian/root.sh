# For scripts to source that have set suite, sources and scratch: makes a bare Debian of the release $suite in
# $scratch/root, and gives them functions to work in it. The sources are mounted into it read-only, as /perfkit.
#
# The root is made anew by debootstrap from the mirror that this machine's own apt uses, so that it has nothing which an
# earlier run has installed or built. Mounts are made in a mount namespace, so they end with the script that sources this.
# shellcheck shell=bash disable=SC2154  # the three variables are the sourcing script's
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

# install PACKAGES: those of a new root that the script's user is told to have.
install() {
  local patient="-o Acquire::Retries=3 -o Acquire::http::Timeout=30"
  in_root "apt-get $patient update" >"$scratch/log" 2>&1 || skip "the package lists cannot be fetched"
  stage "install $*" "apt-get $patient install --yes --no-install-recommends $*"
}

# The mirror that the host takes Debian itself from; nothing if unknown: debootstrap has a default.
mirror() {
  apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Component: main' 2>/dev/null |
    head -n 1 || true
}

make_root() {
  rm -rf --one-file-system "$root"
  mkdir -p "$scratch"
  # shellcheck disable=SC2046  # no mirror is no argument
  if ! debootstrap --variant=minbase "$suite" "$root" $(mirror) >"$scratch/log" 2>&1; then
    cp "$root/debootstrap/debootstrap.log" "$scratch/debootstrap.log" 2>/dev/null || true
    skip "debootstrap cannot make it here: $(tail -n 1 "$scratch/log")"
  fi
}

[ "$(id -u)" = 0 ] || skip "only root can make and mount a root folder"
command -v debootstrap >/dev/null || skip "debootstrap is not installed"
[ -e "/usr/share/debootstrap/scripts/$suite" ] || skip "this debootstrap does not know the release"
if [ "${PERFKIT_IN_MOUNT_NAMESPACE:-}" != 1 ]; then
  unshare --mount true 2>/dev/null || skip "no mount namespace may be made here"
  PERFKIT_IN_MOUNT_NAMESPACE=1 exec unshare --mount --propagation private "$0" "$@"
fi

make_root
mkdir -p "$root/perfkit"
mount --bind "$root" "$root"  # tests change the propagation of /, which must be a mount for that
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
mount --bind "$sources" "$root/perfkit"
mount -o remount,bind,ro "$root/perfkit"
cp /etc/resolv.conf "$root/etc/resolv.conf"
