# LD_PRELOAD=libperfkit_profile_preload.so: the profile of an unchanged program. The library contains all that a profile
# needs, and exports none of it.
if(NOT TARGET perfkit_dwarf OR NOT TARGET perfkit_exporters)
  message(STATUS "libperfkit_profile_preload.so is left out: it needs perfkit::dwarf and perfkit::exporters")
  return()
endif()
get_target_property(type perfkit TYPE)
if(type STREQUAL "SHARED_LIBRARY" OR PERFKIT_SANITIZE)
  return()  # a preloaded library can't bring a sanitizer's runtime along
endif()

file(GLOB preload_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/preload/*.cc")
add_library(perfkit_profile_preload MODULE ${preload_sources})
perfkit_target(perfkit_profile_preload)
set_target_properties(perfkit_profile_preload PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
target_include_directories(perfkit_profile_preload PRIVATE "${PROJECT_SOURCE_DIR}")
target_link_libraries(perfkit_profile_preload PRIVATE perfkit_dwarf perfkit_exporters)
target_link_options(perfkit_profile_preload PRIVATE LINKER:--no-undefined LINKER:--exclude-libs,ALL)
if(PERFKIT_INSTALL)
  install(TARGETS perfkit_profile_preload LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT perfkit)
endif()
