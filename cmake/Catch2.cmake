# Finds Catch2, version 2 or 3. Tests link perfkit_catch2; programs that use Catch2's main link perfkit_catch2_main.
# Tests include <catch2/catch.hpp>, which version 3 lacks: for that, tests/support/catch3 has one. Sets Catch2_FOUND.
find_package(Catch2 2 QUIET)
if(NOT Catch2_FOUND)
  find_package(Catch2 3 QUIET)
endif()
if(NOT Catch2_FOUND)
  return()
endif()

add_library(perfkit_catch2 INTERFACE)
target_link_libraries(perfkit_catch2 INTERFACE Catch2::Catch2)
add_library(perfkit_catch2_main INTERFACE)
target_link_libraries(perfkit_catch2_main INTERFACE perfkit_catch2)
if(Catch2_VERSION VERSION_GREATER_EQUAL 3)
  target_include_directories(perfkit_catch2 INTERFACE "${PROJECT_SOURCE_DIR}/tests/support/catch3")
  target_link_libraries(perfkit_catch2_main INTERFACE Catch2::Catch2WithMain)
endif()
