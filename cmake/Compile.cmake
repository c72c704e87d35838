# Warnings, sanitizers, visibility and ccache of all targets.
#
# Everything is attached to perfkit's own targets, or set only if perfkit is the top-level project. So a project that
# adds perfkit as a subdirectory keeps its own flags.

if(PERFKIT_TOP_LEVEL)
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Debug, Release, RelWithDebInfo or MinSizeRel" FORCE)
  endif()
  include(Ccache)
endif()

if(PERFKIT_SANITIZE)
  set(sanitize -fsanitize=${PERFKIT_SANITIZE} -fno-omit-frame-pointer)
  if(PERFKIT_SANITIZE MATCHES "undefined")
    # vptr opens a pipe to see whether memory is readable. In a test that has no descriptor left, it finds "an object with
    # an invalid vptr" in each new std::thread.
    list(APPEND sanitize -fno-sanitize-recover=undefined -fno-sanitize=vptr)
  endif()
  add_compile_options(${sanitize})
  add_link_options(${sanitize})
endif()

# perfkit_target(<target>): the language and the warnings of every target here.
function(perfkit_target target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic)
  # Callers initialise structs of options by name, and leave out members.
  target_compile_options(${target} PRIVATE -Wno-missing-field-initializers)
  if(PERFKIT_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(PERFKIT_FAST_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC 12 forgets that a precompiled std::string comes from a system header, and warns about its code (GCC bug
    # 105329). In a unity build, a class of a .cc file with a member of an unnamed namespace looks like one of a header.
    target_compile_options(${target} PRIVATE -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread
                           -Wno-subobject-linkage)
  endif()
endfunction()

# perfkit_precompile(<target>): precompiles the headers that most sources include; Abseil's Status alone takes a second.
function(perfkit_precompile target)
  if(PERFKIT_PRECOMPILE OR PERFKIT_FAST_BUILD)
    target_precompile_headers(${target} PRIVATE <absl/status/statusor.h> <absl/strings/str_format.h> <algorithm> <memory>
                              <optional> <string> <vector>)
  endif()
endfunction()

# perfkit_library(<target>): as perfkit_target, with the properties of libraries. A shared library exports the public
# names only (perfkit.map). A static one hides all names, so that two libraries that each link perfkit do not share a
# copy.
function(perfkit_library target)
  perfkit_target(${target})
  string(REPLACE "perfkit_" "" name ${target})
  add_library(perfkit::${name} ALIAS ${target})
  set_target_properties(
    ${target}
    PROPERTIES EXPORT_NAME ${name}
               POSITION_INDEPENDENT_CODE ON
               VERSION ${PROJECT_VERSION}
               SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  target_include_directories(
    ${target}
    PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
    PRIVATE ${PROJECT_SOURCE_DIR})
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "SHARED_LIBRARY")
    set(map ${PROJECT_SOURCE_DIR}/cmake/perfkit.map)
    target_link_options(${target} PRIVATE -Wl,--version-script=${map} -Wl,-Bsymbolic-functions)
    set_target_properties(${target} PROPERTIES LINK_DEPENDS ${map})
  else()
    set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  endif()
  if(PERFKIT_PRECOMPILE AND NOT PERFKIT_FAST_BUILD OR target STREQUAL "perfkit")
    perfkit_precompile(${target})  # the optional components are one or two files each in a fast build
  endif()
  # How its functions are unwound depends on what each file shows the compiler of the other.
  if(PERFKIT_FAST_BUILD AND NOT target MATCHES "^perfkit_locks")
    get_target_property(sources ${target} SOURCES)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
    foreach(source IN LISTS sources)
      cmake_path(GET source PARENT_PATH folder)
      cmake_path(RELATIVE_PATH folder BASE_DIRECTORY "${PROJECT_SOURCE_DIR}/src")
      string(REPLACE "/" "_" folder "${folder}")
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP "${folder}")
    endforeach()
  endif()
endfunction()
