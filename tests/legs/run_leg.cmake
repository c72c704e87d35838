# Configures, builds and tests perfkit in another way: cmake -DSOURCE= -DBUILD= -DGENERATOR= -DARGUMENTS= -P
# -DBUILD_ONLY=ON: what is built runs elsewhere. -DABSENT=<file>: if it exists, it says why this cannot be done here.
#
# Prints what ctest printed, and what the build printed only if it failed: a sanitizer's build warns of headers that are
# not ours, and the test that failed must not stand below a thousand such lines. The tests that look at the whole (legs,
# consumers, lint) stay out: PERFKIT_LEG. -g1 keeps line numbers in reports, at a third of the cost of -g. A fast build
# takes a fifth of the time, and is why no two files of one folder may use the same name for different things.
include("${CMAKE_CURRENT_LIST_DIR}/../../cmake/Steps.cmake")

if(ABSENT AND EXISTS "${ABSENT}")
  file(READ "${ABSENT}" reason)
  message("SKIPPED: all tests: ${reason}")
  return()
endif()
string(REPLACE "|" ";" ARGUMENTS "${ARGUMENTS}")
quiet_step(configure ${CMAKE_COMMAND} -S "${SOURCE}" -B "${BUILD}" -G "${GENERATOR}" -DPERFKIT_LEG=ON
           -DCMAKE_BUILD_TYPE=None "-DCMAKE_CXX_FLAGS=-O1 -g1" -DPERFKIT_FAST_BUILD=ON -DPERFKIT_BUILD_BENCH=OFF
           -DPERFKIT_BUILD_EXAMPLES=OFF -DPERFKIT_INSTALL=OFF ${ARGUMENTS})
quiet_step(build ${CMAKE_COMMAND} --build "${BUILD}" --parallel ${cores})
if(NOT BUILD_ONLY)
  step(test ${CMAKE_CTEST_COMMAND} --test-dir "${BUILD}" --output-on-failure --parallel ${cores} --label-exclude heavy)
endif()
