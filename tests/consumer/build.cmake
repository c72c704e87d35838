# Builds and runs the consumer: cmake -DHOW= -DBUILD= -DGENERATOR= and the variables of project/CMakeLists.txt -P
# Builds from scratch each time, so that nothing of an earlier perfkit is used.
include("${CMAKE_CURRENT_LIST_DIR}/../../cmake/Steps.cmake")

if(NOT PROJECT)
  set(PROJECT project)
endif()
file(REMOVE_RECURSE "${BUILD}")
step(configure ${CMAKE_COMMAND} -S "${CMAKE_CURRENT_LIST_DIR}/${PROJECT}" -B "${BUILD}" -G "${GENERATOR}" "-DHOW=${HOW}"
     "-DPERFKIT=${PERFKIT}" "-DCMAKE_PREFIX_PATH=${PREFIX}" "-DWANTED=${WANTED}" "-DCMAKE_CXX_FLAGS=${FLAGS}"
     "-DBUILD_SHARED_LIBS=${SHARED}" "-DPERFKIT_NO_EXCEPTIONS=${NO_EXCEPTIONS}" -DPERFKIT_FAST_BUILD=ON
     -DCMAKE_BUILD_TYPE=None)
step(build ${CMAKE_COMMAND} --build "${BUILD}" --parallel ${cores})
step(run "${BUILD}/consumer")
if(WANTED MATCHES "benchmark")
  execute_process(COMMAND "${BUILD}/benchmark_consumer" OUTPUT_VARIABLE table COMMAND_ERROR_IS_FATAL ANY)
  if(NOT table MATCHES "Touch[^\n]* page-faults(:u)?=256")
    message(FATAL_ERROR "256 touched pages are not 256 faults in\n${table}")
  endif()
endif()
if(WANTED MATCHES "dwarf.*exporters")
  execute_process(COMMAND "${BUILD}/session_consumer" OUTPUT_VARIABLE report COMMAND_ERROR_IS_FATAL ANY)
  if(report MATCHES "is not linked" OR NOT report MATCHES "functions of cpu-clock" OR NOT EXISTS "${BUILD}/session_consumer.pb.gz")
    message(FATAL_ERROR "a session does not find the components that are linked:\n${report}")
  endif()
endif()

# A shared perfkit exports what cmake/perfkit.map says, and no other name.
file(GLOB shared "${BUILD}/perfkit/libperfkit.so")
if(shared)
  find_program(nm nm REQUIRED)
  execute_process(COMMAND ${nm} -DC --defined-only ${shared} OUTPUT_VARIABLE names COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX REPLACE "[;[]|]" "_" names "${names}")
  string(REGEX MATCHALL "[^\n]+" names "${names}")
  list(LENGTH names count)
  list(FILTER names EXCLUDE REGEX " (typeinfo for |typeinfo name for |vtable for )?perfkit::([A-Z]|detail::)")
  if(names OR count LESS 20)
    message(FATAL_ERROR "libperfkit.so exports ${count} names, of which these are not perfkit's API: ${names}")
  endif()
endif()
