# A toolchain file: perfkit for 64-bit Arm, with Debian's cross compiler (g++-aarch64-linux-gnu).
#
#   cmake -S . -B build/aarch64 --toolchain cmake/aarch64.cmake -DPERFKIT_ARM_ROOT=<folder>
#
# <folder> contains libraries for arm64 that the compiler lacks: Abseil (and Catch2 for the tests), unpacked from their
# packages. The build of the test machine makes such a folder (tests/machine/fetch.sh).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

# Of the building machine, only its programs may be used.
set(PERFKIT_ARM_ROOT "" CACHE PATH "Where the arm64 packages are unpacked")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES PERFKIT_ARM_ROOT)
set(CMAKE_FIND_ROOT_PATH "${PERFKIT_ARM_ROOT}")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
foreach(kind LIBRARY INCLUDE PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)
endforeach()
