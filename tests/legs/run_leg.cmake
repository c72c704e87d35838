# Configures, builds and tests perfkit in another way: cmake -DNAME= -DSOURCE= -DBUILD= -DGENERATOR= -DARGUMENTS= -P
#
# Prints what ctest printed. The tests that look at the whole (legs, consumers, lint) stay out: PERFKIT_LEG.
cmake_minimum_required(VERSION 3.25)
cmake_host_system_information(RESULT cores QUERY NUMBER_OF_LOGICAL_CORES)

function(step what)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY "${SOURCE}" RESULT_VARIABLE failed COMMAND_ECHO STDOUT)
  if(failed)
    message(FATAL_ERROR "leg ${NAME}: cannot ${what} (${failed})")
  endif()
endfunction()

# -g1 keeps line numbers in reports, at a third of the cost of -g; precompiled headers save half of the time.
step(configure ${CMAKE_COMMAND} -S "${SOURCE}" -B "${BUILD}" -G "${GENERATOR}" -DPERFKIT_LEG=ON
     -DCMAKE_BUILD_TYPE=None "-DCMAKE_CXX_FLAGS=-O1 -g1" -DPERFKIT_PRECOMPILE=ON -DPERFKIT_BUILD_BENCH=OFF
     -DPERFKIT_BUILD_EXAMPLES=OFF -DPERFKIT_INSTALL=OFF ${ARGUMENTS})
step(build ${CMAKE_COMMAND} --build "${BUILD}" --parallel ${cores})
step(test ${CMAKE_CTEST_COMMAND} --test-dir "${BUILD}" --output-on-failure --parallel ${cores} --label-exclude heavy)
