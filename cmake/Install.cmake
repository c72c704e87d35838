# Installs the libraries, the headers, and the files by which other projects find them.
#
# The core and each component export a file of targets of their own, because a component needs its dependency;
# perfkitConfig.cmake looks for that dependency when the component is requested.
include(CMakePackageConfigHelpers)
set(PERFKIT_CMAKE_DIR "${CMAKE_INSTALL_LIBDIR}/cmake/perfkit")

foreach(name core ${PERFKIT_COMPONENTS})
  set(target perfkit_${name})
  if(name STREQUAL "core")
    set(target perfkit)
  endif()
  install(TARGETS ${target} EXPORT perfkit-${name} COMPONENT perfkit LIBRARY NAMELINK_COMPONENT perfkit)
  install(EXPORT perfkit-${name} NAMESPACE perfkit:: DESTINATION "${PERFKIT_CMAKE_DIR}" COMPONENT perfkit)
endforeach()

# Part of the component testing, but each program chooses it, because it wraps the program's malloc. CMake names the
# folder of the exported object after the build type; the copy has a fixed name for users without CMake.
install(TARGETS perfkit_testing_alloc EXPORT perfkit-testing COMPONENT perfkit
        OBJECTS DESTINATION "${CMAKE_INSTALL_LIBDIR}/perfkit")
if(PERFKIT_ENABLE)
  install(FILES $<TARGET_OBJECTS:perfkit_testing_alloc> DESTINATION "${CMAKE_INSTALL_LIBDIR}/perfkit"
          RENAME testing_alloc.o COMPONENT perfkit)
endif()

# Headers of components that were not built are left out.
set(absent ${PERFKIT_COMPONENT_HEADERS})
foreach(name IN LISTS PERFKIT_COMPONENTS)
  get_target_property(headers perfkit_${name} PERFKIT_HEADERS)
  if(headers)
    list(REMOVE_ITEM absent ${headers})
  endif()
endforeach()
list(TRANSFORM absent REPLACE "(.+)" "\\1$")
list(JOIN absent "|" absent)
set(unwanted "")
if(absent)
  set(unwanted REGEX "/(${absent})" EXCLUDE)
endif()
install(DIRECTORY include/perfkit DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT perfkit FILES_MATCHING
        PATTERN "*.h" ${unwanted})

configure_package_config_file(cmake/perfkitConfig.cmake.in "${PROJECT_BINARY_DIR}/perfkitConfig.cmake"
                              INSTALL_DESTINATION "${PERFKIT_CMAKE_DIR}" NO_SET_AND_CHECK_MACRO)
# Below 1.0 a minor version may change the API (SemVer, 4).
write_basic_package_version_file("${PROJECT_BINARY_DIR}/perfkitConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/perfkitConfig.cmake" "${PROJECT_BINARY_DIR}/perfkitConfigVersion.cmake"
              cmake/FindLibdw.cmake cmake/FindPfm.cmake
        DESTINATION "${PERFKIT_CMAKE_DIR}" COMPONENT perfkit)

# pkg-config files: paths are relative to the file itself, so that the tree can be moved.
file(RELATIVE_PATH PERFKIT_PC_PREFIX "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" PERFKIT_PC_PREFIX "${PERFKIT_PC_PREFIX}")

# perfkit_pkg_config(<name> <description> REQUIRES <module>... LIBS <word>...): installs <name>.pc.
function(perfkit_pkg_config name description)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "REQUIRES;LIBS")
  set(PERFKIT_PC_NAME "${name}")
  set(PERFKIT_PC_DESCRIPTION "${description}")
  if(NOT PERFKIT_ENABLE)  # headers only
    set(arg_LIBS "")
    list(FILTER arg_REQUIRES INCLUDE REGEX "^perfkit")
    set(PERFKIT_PC_DEFINES " -DPERFKIT_ENABLE=0")
  elseif(arg_LIBS)
    list(PREPEND arg_LIBS "-L\${libdir}")
  endif()
  list(JOIN arg_REQUIRES " " PERFKIT_PC_REQUIRES)
  list(JOIN arg_LIBS " " PERFKIT_PC_LIBS)
  configure_file(cmake/perfkit.pc.in ${name}.pc @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/${name}.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT perfkit)
endfunction()

perfkit_pkg_config(perfkit "${PROJECT_DESCRIPTION}" REQUIRES absl_status absl_statusor absl_str_format absl_function_ref
                   LIBS -lperfkit -pthread)
set(dependencies_dwarf -Wl,-u,_ZN7perfkit14StackHookTableE -ldw -lelf -ldl)
set(dependencies_pfm -lpfm)
set(dependencies_locks -Wl,-u,perfkit_lock_waits -ldl)
set(dependencies_exporters -Wl,-u,_ZN7perfkit19ExporterFormatTableE -lz)
list(TRANSFORM PERFKIT_WRAPPED PREPEND "-Wl,--wrap=" OUTPUT_VARIABLE dependencies_benchmark)
list(APPEND dependencies_benchmark -lbenchmark)
foreach(name IN LISTS PERFKIT_COMPONENTS)
  perfkit_pkg_config(perfkit-${name} "perfkit's component ${name}" REQUIRES "perfkit = ${PROJECT_VERSION}"
                     LIBS -lperfkit_${name} ${dependencies_${name}})
endforeach()
perfkit_pkg_config(perfkit-testing_alloc "Counts the allocations of the program that links it" REQUIRES perfkit-testing
                   LIBS "\${libdir}/perfkit/testing_alloc.o")
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT perfkit)
