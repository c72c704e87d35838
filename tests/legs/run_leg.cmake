# Configures, builds and tests perfkit in another way: cmake -DSOURCE= -DBUILD= -DGENERATOR= -DARGUMENTS= -P
# -DBUILD_ONLY=ON: the tests run elsewhere. -DABSENT=<file>: if it exists, it says why this leg cannot run here.
#
# Prints the output of ctest, and that of the build only if the build failed: a sanitizer's build warns about other
# projects' headers, and a failing test should not be hidden below a thousand such lines. The tests of the whole (legs,
# consumers, lint) are left out: PERFKIT_LEG. -g1 keeps line numbers in reports, at a third of the cost of -g. A fast
# build takes a fifth of the time; it is the reason why no two files of one folder may use the same name for different
# things.
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
# Another compiler may find something in what no test links; a sanitizer can't.
set(target all)
if(ARGUMENTS MATCHES "PERFKIT_SANITIZE=")
  set(target test_programs)
endif()
quiet_step(build ${CMAKE_COMMAND} --build "${BUILD}" --parallel ${cores} --target ${target})
if(NOT BUILD_ONLY)
  step(test ${CMAKE_CTEST_COMMAND} --test-dir "${BUILD}" --output-on-failure --parallel ${cores} --label-exclude heavy)
endif()
