# Installs the Debian packages that this build needs, if requested: cmake -D PERFKIT_INSTALL_PACKAGES=ON, as the presets
# do. Included before project(), because the generator's own program may be among them.
#
# The request is removed from the cache at once, so that a later plain configure, or a rebuild that configures again,
# never installs anything. Does not use the network if all packages are installed.
if(NOT PERFKIT_INSTALL_PACKAGES)
  unset(PERFKIT_INSTALL_PACKAGES CACHE)
  return()
endif()
unset(PERFKIT_INSTALL_PACKAGES CACHE)
unset(PERFKIT_INSTALL_PACKAGES)

# The packages of each option. `always` is for the core itself. `make` is for a plain `cmake -B build` afterwards.
set(PERFKIT_PACKAGES_FOR_always make ninja-build pkg-config libabsl-dev libdw-dev libpfm4-dev
    libprotozero-dev zlib1g-dev)
set(PERFKIT_PACKAGES_FOR_PERFKIT_BUILD_TESTS catch2 chromium clang cpio device-tree-compiler g++-aarch64-linux-gnu
    g++-mingw-w64-x86-64 g++-riscv64-linux-gnu golang-github-google-pprof-dev golang-go libbenchmark-dev libbenchmark-tools libboost-fiber-dev
    libclang-rt-dev libdebuginfod1 libgmock-dev libgoogle-perftools4 libgtest-dev libtbb-dev linux-perf musl-tools nlohmann-json3-dev protobuf-compiler python3
    qemu-system-arm qemu-user valgrind wine64)
set(PERFKIT_PACKAGES_FOR_PERFKIT_BUILD_EXAMPLES fonts-dejavu-core libbullet-dev libimgui-dev libsdl2-dev libsqlite3-dev
    libtbb-dev libzstd-dev)
set(PERFKIT_PACKAGES_FOR_PERFKIT_BUILD_BENCH clang g++ libbenchmark-dev libpapi-dev libsqlite3-dev libunwind-dev
    libzstd-dev nodejs perl python3 sqlite3 xz-utils)

# Sets `out` to the packages that are neither installed nor provided by an installed one: Debian 13 has libdebuginfod1 as
# libdebuginfod1t64.
function(perfkit_missing_packages out)
  set(missing ${PERFKIT_PACKAGES_FOR_always})
  foreach(option PERFKIT_BUILD_TESTS PERFKIT_BUILD_EXAMPLES PERFKIT_BUILD_BENCH)
    if(${option})
      list(APPEND missing ${PERFKIT_PACKAGES_FOR_${option}})
    endif()
  endforeach()
  execute_process(COMMAND dpkg-query --show "--showformat=\${db:Status-Status} \${Package} \${Provides}\\n"
                  OUTPUT_VARIABLE known ERROR_QUIET)
  string(REGEX MATCHALL "(^|\n)installed [^\n]+" installed "${known}")
  list(TRANSFORM installed REPLACE "[\n]?installed " "")
  list(TRANSFORM installed REPLACE " \\([^)]*\\)|," "")  # versions of what is provided
  string(REPLACE " " ";" installed "${installed}")
  list(REMOVE_ITEM missing ${installed})
  set(${out} ${missing} PARENT_SCOPE)
endfunction()

# Runs one command of apt-get, by sudo if needed. If it fails, stops and prints the commands to type by hand.
function(perfkit_apt_get advice)
  message(STATUS "Running: ${ARGN}")
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "This command failed (${failed}): ${ARGN}\nInstall the packages by hand, then start again:\n  ${advice}")
  endif()
endfunction()

function(perfkit_install_packages)
  find_program(dpkg dpkg-query NO_CACHE)
  find_program(apt_get apt-get NO_CACHE)
  if(NOT dpkg OR NOT apt_get)
    message(WARNING "PERFKIT_INSTALL_PACKAGES knows Debian's packages only, and there is no apt-get here: install by hand "
                    "what CMake reports as missing. cmake/InstallPackages.cmake has the list.")
    return()
  endif()
  perfkit_missing_packages(missing)
  if(NOT missing)
    message(STATUS "All packages are installed")
    return()
  endif()
  list(JOIN missing " " words)
  set(advice "apt-get update && apt-get install --no-install-recommends ${words}")
  execute_process(COMMAND id -u OUTPUT_VARIABLE uid OUTPUT_STRIP_TRAILING_WHITESPACE)
  set(as_root "")
  if(NOT uid EQUAL 0)
    find_program(sudo sudo NO_CACHE)
    if(NOT sudo)
      message(FATAL_ERROR "Packages are missing, and this user is neither root nor has sudo. As root, run\n  ${advice}\n"
                          "and start again.")
    endif()
    set(as_root ${sudo})
  endif()
  set(patient -o Acquire::Retries=3 -o Acquire::http::Timeout=30)
  perfkit_apt_get("${advice}" ${as_root} apt-get ${patient} update)
  perfkit_apt_get("${advice}" ${as_root} env DEBIAN_FRONTEND=noninteractive apt-get ${patient} install --yes
                  --no-install-recommends ${missing})
endfunction()

perfkit_install_packages()
