# Installs what was built: libraries, headers, and the files by which others find them.
#
# The core and each component export a file of targets of their own, because a component may be used only where its
# dependency is; perfkitConfig.cmake looks for that dependency when the component is asked for.
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

# Part of component testing, but for each program to choose: it wraps malloc there.
install(TARGETS perfkit_testing_alloc EXPORT perfkit-testing COMPONENT perfkit
        OBJECTS DESTINATION "${CMAKE_INSTALL_LIBDIR}/perfkit")

# Headers: those of a component that was not built stay out.
set(absent ${PERFKIT_COMPONENT_HEADERS})
foreach(name IN LISTS PERFKIT_COMPONENTS)
  get_target_property(headers perfkit_${name} PERFKIT_HEADERS)
  list(REMOVE_ITEM absent ${headers})
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

# pkg-config: paths relative to the file itself, so that the tree can be moved.
file(RELATIVE_PATH PERFKIT_PC_PREFIX "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" PERFKIT_PC_PREFIX "${PERFKIT_PC_PREFIX}")
configure_file(cmake/perfkit.pc.in perfkit.pc @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/perfkit.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT perfkit)
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT perfkit)
