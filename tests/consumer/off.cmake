# Installs perfkit with PERFKIT_ENABLE=OFF, where no Abseil can be found, and builds and runs another project's engine
# loop with it: cmake -DPERFKIT= -DBUILD= -DGENERATOR= [-DSYSTEM=Windows -DCXX=] -P
# With SYSTEM, PERFKIT_ENABLE stays at its default, for a compiler of that system; nothing is run.
include("${CMAKE_CURRENT_LIST_DIR}/../../cmake/Steps.cmake")

set(system -DPERFKIT_ENABLE=OFF)
if(SYSTEM)
  set(system "-DCMAKE_SYSTEM_NAME=${SYSTEM}" "-DCMAKE_CXX_COMPILER=${CXX}")
endif()
list(APPEND system -DCMAKE_DISABLE_FIND_PACKAGE_absl=ON -DCMAKE_DISABLE_FIND_PACKAGE_Threads=ON -DCMAKE_BUILD_TYPE=Release)
file(REMOVE_RECURSE "${BUILD}")
step(configure ${CMAKE_COMMAND} -S "${PERFKIT}" -B "${BUILD}/perfkit" -G "${GENERATOR}" ${system})
step(build ${CMAKE_COMMAND} --build "${BUILD}/perfkit")
step(install ${CMAKE_COMMAND} --install "${BUILD}/perfkit" --prefix "${BUILD}/prefix")

file(WRITE "${BUILD}/game/CMakeLists.txt" "cmake_minimum_required(VERSION 3.25)
project(game LANGUAGES CXX)
find_package(perfkit 0.1 REQUIRED COMPONENTS dwarf testing)
add_executable(game \"${PERFKIT}/tests/compile/off/api.cc\")
target_link_libraries(game PRIVATE perfkit::perfkit perfkit::dwarf perfkit::testing_alloc)
")
step("configure the game" ${CMAKE_COMMAND} -S "${BUILD}/game" -B "${BUILD}/game/build" -G "${GENERATOR}" ${system}
     "-Dperfkit_ROOT=${BUILD}/prefix")
step("build the game" ${CMAKE_COMMAND} --build "${BUILD}/game/build")
if(SYSTEM)
  return()
endif()
step("run the game" "${BUILD}/game/build/game")

find_program(pkg_config pkg-config)
if(pkg_config)
  file(GLOB_RECURSE pc "${BUILD}/prefix/perfkit.pc")
  cmake_path(GET pc PARENT_PATH folder)
  set(ENV{PKG_CONFIG_PATH} "${folder}")
  execute_process(COMMAND ${pkg_config} --cflags --libs perfkit OUTPUT_VARIABLE flags COMMAND_ERROR_IS_FATAL ANY)
  if(NOT flags MATCHES "-DPERFKIT_ENABLE=0" OR flags MATCHES " -l")
    message(FATAL_ERROR "pkg-config says: ${flags}")
  endif()
endif()
