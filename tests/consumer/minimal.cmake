# A plain configure with only Abseil installed: cmake -DPERFKIT= -DBUILD= -DGENERATOR= -P
include("${CMAKE_CURRENT_LIST_DIR}/../../cmake/Steps.cmake")

set(absent "")
foreach(package Catch2 benchmark Pfm Libdw PkgConfig TBB)
  list(APPEND absent "-DCMAKE_DISABLE_FIND_PACKAGE_${package}=ON")
endforeach()
file(REMOVE_RECURSE "${BUILD}")
step("configure with Abseil only" ${CMAKE_COMMAND} -S "${PERFKIT}" -B "${BUILD}" -G "${GENERATOR}" ${absent})
file(STRINGS "${BUILD}/CMakeCache.txt" tests REGEX "^PERFKIT_BUILD_TESTS:BOOL=ON$")
if(NOT tests OR EXISTS "${BUILD}/CTestTestfile.cmake")
  message(FATAL_ERROR "the tests are on by default, and must be left out without Catch2")
endif()
