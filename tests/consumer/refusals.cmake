# What find_package must not find, and the messages instead: cmake -DPREFIX= -DBUILD= -DGENERATOR= -P
include("${CMAKE_CURRENT_LIST_DIR}/../../cmake/Steps.cmake")

file(REMOVE_RECURSE "${BUILD}")
file(WRITE "${BUILD}/CMakeLists.txt" "cmake_minimum_required(VERSION 3.25)\nproject(refusal LANGUAGES CXX)\n"
     "find_package(perfkit \${WANTED})\n")
set(configure ${CMAKE_COMMAND} -S "${BUILD}" -B "${BUILD}/build" -G "${GENERATOR}" "-DCMAKE_PREFIX_PATH=${PREFIX}")
step_must_fail("find a component that is not there" "without a component 'nonesuch'; it has: "
               ${configure} "-DWANTED=REQUIRED\;COMPONENTS\;nonesuch")
step_must_fail("find a newer version" "compatible with requested version \"9.0\"" ${configure}
               "-DWANTED=9.0\;REQUIRED")
step_must_fail("find another minor version below 1.0" "compatible with requested version \"0.99\"" ${configure}
               "-DWANTED=0.99\;REQUIRED")
step("find a target that is in another component" ${configure} "-DWANTED=REQUIRED\;COMPONENTS\;testing_alloc")
step("go without an optional component" ${configure} "-DWANTED=REQUIRED\;OPTIONAL_COMPONENTS\;nonesuch")
