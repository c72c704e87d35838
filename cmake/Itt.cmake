# INTEL_LIBITTNOTIFY64=libperfkit_itt.so: the tasks of ITT-annotated programs as zones, in an unchanged program. The library
# contains the core, and exports only what ittnotify and IttCollection look up.
get_target_property(type perfkit TYPE)
if(type STREQUAL "SHARED_LIBRARY" OR PERFKIT_SANITIZE)
  return()  # it needs internals of the core; a loaded library can't bring a sanitizer's runtime along
endif()

file(GLOB itt_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/itt/library/*.cc")
add_library(perfkit_itt MODULE ${itt_sources})
perfkit_target(perfkit_itt)
set_target_properties(perfkit_itt PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
target_include_directories(perfkit_itt PRIVATE "${PROJECT_SOURCE_DIR}")
target_link_libraries(perfkit_itt PRIVATE perfkit ${CMAKE_DL_LIBS})
# Programs keep pointers into it until they end, so it must stay even if one of them unloads it.
target_link_options(perfkit_itt PRIVATE LINKER:--no-undefined LINKER:--exclude-libs,ALL LINKER:-z,nodelete)
if(PERFKIT_INSTALL)
  install(TARGETS perfkit_itt LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT perfkit)
endif()
