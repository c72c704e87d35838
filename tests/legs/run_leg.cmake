# Configures and builds perfkit in another way: cmake -DSOURCE= -DBUILD= -DGENERATOR= -DARGUMENTS= -P run_leg.cmake
# -DABSENT=<file>: if it exists, it says why this leg cannot run here. -DTARGET=<target>: instead of the default.
# -DTEST_MAIN=<object>: the main of the test programs, which is not instrumented, as another build has compiled it.
#
# Prints the output of the build only if it failed: a sanitizer's build warns about other projects' headers. The tests of
# the whole (legs, consumers, lint) are left out: PERFKIT_LEG. -g1 keeps line numbers in reports, at a third of the cost of -g. A fast
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
           -DPERFKIT_BUILD_EXAMPLES=OFF -DPERFKIT_INSTALL=OFF "-DPERFKIT_TEST_MAIN=${TEST_MAIN}" ${ARGUMENTS})
# Another compiler may find something in what no test links; a sanitizer can't.
if(NOT TARGET)
  set(TARGET all)
  if(ARGUMENTS MATCHES "PERFKIT_SANITIZE=")
    set(TARGET test_programs)
  endif()
endif()
quiet_step(build ${CMAKE_COMMAND} --build "${BUILD}" --parallel ${jobs} --target ${TARGET})
