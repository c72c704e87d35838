#!/bin/sh
# The sample program with Catch2 v3, from Debian's backports: catch2_v3.sh COMPILER SOURCES SCRATCH LIBRARY...
#
# Nothing is installed: a private apt state in SCRATCH fetches the package, and dpkg-deb unpacks it there. Without a
# network, without apt, or on another distribution the test is skipped with that reason.
set -u
compiler=$1 sources=$2 scratch=$3
shift 3

skip() {
  echo "SKIPPED: catch2_v3: $1"
  exit 77
}
fail() {
  echo "FAILED: $1"
  cat "$scratch/out" 2>/dev/null
  exit 1
}

fetch() {
  command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || skip "no apt-get here"
  keys=/usr/share/keyrings/debian-archive-keyring.gpg
  [ -r $keys ] || skip "no keys of Debian's archive here"
  mkdir -p "$scratch/apt/lists/partial" "$scratch/apt/cache/archives/partial" "$scratch/root" || skip "cannot write $scratch"
  # The mirror that this machine takes Debian itself from.
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Component: main' | head -n 1)
  [ -n "$mirror" ] || skip "apt knows no mirror of Debian here"
  echo "deb [signed-by=$keys] $mirror bookworm-backports main" >"$scratch/apt/sources.list"
  cat >"$scratch/apt/apt.conf" <<END
Dir::State::Lists "$scratch/apt/lists";
Dir::Cache "$scratch/apt/cache";
Dir::Etc::SourceList "$scratch/apt/sources.list";
Dir::Etc::SourceParts "/nonexistent";
Dir::Etc::Preferences "/nonexistent";
Dir::Etc::PreferencesParts "/nonexistent";
APT::Sandbox::User "";
Acquire::Retries "1";
Acquire::http::Timeout "20";
END
  APT_CONFIG="$scratch/apt/apt.conf"
  export APT_CONFIG
  timeout 90 apt-get update -qq >"$scratch/out" 2>&1 || skip "the lists of bookworm-backports cannot be fetched"
  (cd "$scratch" && timeout 60 apt-get download -qq libcatch2-dev >"$scratch/out" 2>&1) ||
    skip "bookworm-backports has no libcatch2-dev for us"
  dpkg-deb -x "$scratch"/libcatch2-dev_3*.deb "$scratch/root" 2>"$scratch/out" || skip "bookworm-backports' libcatch2-dev is not v3"
  unset APT_CONFIG
}

headers=$scratch/root/usr/include
[ -e "$headers/catch2/catch_test_macros.hpp" ] || fetch
catch=$(find "$scratch/root/usr/lib" -name 'libCatch2*.a' | sort -r | tr '\n' ' ')  # Main before Catch2
# shellcheck disable=SC2086,SC2046  # lists of words
"$compiler" -std=c++20 -O1 -I"$headers" -I"$sources" -I"$sources/include" "$sources/tests/testing/samples_catch2.cc" \
  "$@" $catch "$1" "$2" $(pkg-config --libs absl_status absl_statusor absl_str_format) -pthread \
  -o "$scratch/samples" >"$scratch/out" 2>&1 || fail "it does not build"

# The tests' own main, by the header that stands in for version 2's: skips are ours there.
printf '%s\n' '#include <catch2/catch.hpp>' '#include "tests/support/skip.h"' \
  'using Catch::Matchers::Contains;' \
  'TEST_CASE("names of version 2") { CHECK_THAT(std::string("abc"), Contains("b") && Catch::Contains(std::string("c"))); }' \
  'TEST_CASE("numbers") { CHECK(1.0 == Approx(1.001).epsilon(0.01)); }' \
  'TEST_CASE("skipped") { SKIP_TEST("on purpose"); }' >"$scratch/own.cc"
"$compiler" -std=c++20 -I"$sources/tests/support/catch3" -I"$headers" -I"$sources" "$scratch/own.cc" \
  "$sources/tests/support/main.cc" "$(find "$scratch/root/usr/lib" -name 'libCatch2.a')" -o "$scratch/own" \
  >"$scratch/out" 2>&1 || fail "the tests' main does not build"
"$scratch/own" >"$scratch/out" 2>&1 || fail "the tests' main ended with $?"
"$scratch/own" skipped >"$scratch/out" 2>&1
[ $? = 77 ] || fail "the tests' main does not tell that all was skipped"

# expect CODE TEXT ARGUMENT...: how the program ends, and a text in what it prints. 0: passed; 4: all were skipped;
# failed: anything else (the number of failures, or 42 since 3.7).
expect() {
  code=$1 text=$2
  shift 2
  "$scratch/samples" "$@" >"$scratch/out" 2>&1
  got=$?
  case $got in 0 | 4) ;; *) got=failed ;; esac
  [ $got = "$code" ] || fail "$* ended with $got, not $code"
  grep -qF "$text" "$scratch/out" || fail "$* does not say: $text"
}
expect 0 "All tests passed" "[pass]"
expect failed "allocations 3 (exact, wrapped malloc; 5 times the same" "[fail]"
expect 4 "2 skipped" "[unmeasurable]"  # 4: all were skipped
expect 4 "unmeasurable: task-clock: " "[unmeasurable]"
expect 4 "samples_catch2.cc:31: SKIPPED:" "[unmeasurable]"  # Not a line of our header.
expect failed "1 failed" "[then fails]"
expect failed "unmeasurable: task-clock: " "[then fails]"
expect 0 "perfkit.allocations=3" "[pass]" -r junit
expect 0 "perfkit.allocations=3" "[pass]" -r xml
expect failed "by zone, in a run of its own:" "[zones]"
PERFKIT_REQUIRE=all
export PERFKIT_REQUIRE
expect failed "unmeasurable" "[unmeasurable]"
echo "Catch2 v3 passes, fails, skips and reports as it should"
