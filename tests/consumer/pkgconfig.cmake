# Builds the consumer with a plain compiler line and pkg-config: cmake -DCXX= -DPREFIX= -DBUILD= -P
include("${CMAKE_CURRENT_LIST_DIR}/../../cmake/Steps.cmake")
find_program(pkg_config pkg-config)
if(NOT pkg_config)
  message("SKIPPED: all tests: pkg-config is not installed")
  return()
endif()

file(GLOB_RECURSE pc "${PREFIX}/perfkit.pc")
cmake_path(GET pc PARENT_PATH folder)
set(ENV{PKG_CONFIG_PATH} "${folder}")
file(MAKE_DIRECTORY "${BUILD}")
set(source "${CMAKE_CURRENT_LIST_DIR}/project/consumer.cc")
foreach(static "" "--static")
  step("build ${static}" sh -c
       "'${CXX}' -std=c++20 '${source}' -o '${BUILD}/consumer' $('${pkg_config}' ${static} --cflags --libs perfkit)")
  step("run ${static}" "${BUILD}/consumer")
endforeach()
step("tell the version" ${pkg_config} --exact-version=${VERSION} perfkit)
