#!/bin/bash
# Fetches Debian's arm64 packages and unpacks them: fetch.sh CACHE PACKAGES KERNEL=SUITE...
#
# CACHE/root gets PACKAGES (one word) with all they need, CACHE/KERNEL the kernel of SUITE. What is there is not fetched
# again. apt is told to look below CACHE only and to take this for an arm64 machine: nothing changes on the host, and no
# right is needed. The mirrors are those of the host's own configuration. Where something cannot be had, CACHE/absent (or
# CACHE/KERNEL/absent) says why; the tests that want it skip with that reason.
set -euo pipefail
cache=$1 packages=$2
shift 2
mkdir -p "$cache"
cache=$(cd "$cache" && pwd)
log=$cache/log
host_suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")

# give_up FILE WHAT: says why. What apt could not reach comes first: the rest follows from it.
give_up() {
  local why
  why=$( (grep -m 1 'Failed to fetch' "$log.update" || tail -n 1 "$log") | tr -d '\r')
  echo "$2: ${why:-the mirror does not answer in time}" | tee "$1"
}

# configure NAME [SOURCES]: apt with lists of its own; with SOURCES, these instead of the host's.
configure() {
  local state=$cache/apt-$1
  mkdir -p "$state/lists/partial" "$cache/debs/partial"
  touch "$state/status"
  cat >"$state/apt.conf" <<EOF
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear DPkg::Post-Invoke;
APT::Architecture "arm64";
#clear APT::Architectures;
APT::Architectures { "arm64"; };
APT::Install-Recommends "false";
APT::Sandbox::User "$(id -un)";
Acquire::Languages "none";
Acquire::Retries "2";
Acquire::http::Timeout "30";
Dir::State "$state";
Dir::State::status "$state/status";
Dir::Cache "$state";
Dir::Cache::archives "$cache/debs";
EOF
  if [ $# -gt 1 ]; then
    echo "$2" >"$state/sources.list"
    printf 'Dir::Etc::sourcelist "%s";\nDir::Etc::sourceparts "/dev/null";\n' "$state/sources.list" >>"$state/apt.conf"
  fi
  export APT_CONFIG=$state/apt.conf
  timeout 90 apt-get -q update >"$log.update" 2>&1
}

# The mirror that the host takes Debian itself from.
mirror() {
  APT_CONFIG=$cache/apt-host/apt.conf apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' \
    'Origin: Debian' 'Component: main' | head -n 1
}

unpack() {  # DEB FOLDER
  dpkg-deb --extract "$1" "$2"
}

fetch_root() {
  apt-get -q -y --print-uris install $packages 2>"$log" | sed -n "s/^'[^']*' \([^ ]*\) .*/\1/p" >"$cache/root.list"
  timeout 300 apt-get -q -y --download-only install $packages >"$log" 2>&1 || return 1
  rm -rf "$cache/root.new"
  mkdir "$cache/root.new"
  while read -r deb; do unpack "$cache/debs/$deb" "$cache/root.new"; done <"$cache/root.list"
  echo "$packages" >"$cache/root.new/packages"
  rm -rf "$cache/root"
  mv "$cache/root.new" "$cache/root"
}

fetch_kernel() {  # NAME SUITE
  # The host's own suite is in the lists that are there, with its security updates.
  if [ "$2" != "$host_suite" ]; then configure "$2" "deb $(mirror) $2 main" || return 1; fi
  local package
  package=$(apt-cache depends linux-image-cloud-arm64 | sed -n 's/.*Depends: \(linux-image-[^ ]*\).*/\1/p' | head -n 1)
  rm -rf "$cache/$1.new"
  mkdir -p "$cache/$1.new"
  (cd "$cache/$1.new" && timeout 150 apt-get -q download "$package") >"$log" 2>&1 || return 1
  unpack "$cache/$1.new/"*.deb "$cache/$1.new" && mv "$cache/$1.new/boot/"vmlinuz-* "$cache/$1.new/vmlinuz"
  echo "$package" >"$cache/$1.new/package"
  rm -rf "$cache/$1.new/"{lib,usr,*.deb} "$cache/$1"
  mv "$cache/$1.new" "$cache/$1"
}

have_host_lists() {
  export APT_CONFIG=$cache/apt-host/apt.conf
  [ -n "${updated:-}" ] || configure host && updated=1
}

rm -f "$cache/absent"
touch "$log" "$log.update"
if [ "$(cat "$cache/root/packages" 2>/dev/null)" != "$packages" ]; then
  if ! have_host_lists || ! fetch_root; then
    give_up "$cache/absent" "arm64 packages cannot be fetched"
    exit 0
  fi
fi
for kernel in "$@"; do
  name=${kernel%%=*}
  [ ! -e "$cache/$name/vmlinuz" ] || continue
  if ! have_host_lists || ! fetch_kernel "$name" "${kernel#*=}"; then
    mkdir -p "$cache/$name"
    give_up "$cache/$name/absent" "kernel $name cannot be fetched"
  fi
done
cat "$cache/root.list" "$cache"/*/package 2>/dev/null || true
