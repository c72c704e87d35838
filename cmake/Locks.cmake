# What perfkit::locks needs beyond an ordinary component: its link option, and the preload library.
if(NOT TARGET perfkit_locks)
  return()
endif()

# The program's calls of the C library must not be bound lazily: each would go through two tables instead of one.
target_compile_options(perfkit_locks PRIVATE -fno-plt)
# Programs that link it have the interposed calls, even if they name none of its functions: src/sys/lock_waits.h.
target_link_options(perfkit_locks INTERFACE "LINKER:-u,perfkit_lock_waits")

# LD_PRELOAD=libperfkit_locks_preload.so: the same for unchanged programs, beside libperfkit_profile_preload.so.
if(PERFKIT_SANITIZE)
  return()  # a preloaded library can't bring a sanitizer's runtime along
endif()
add_library(perfkit_locks_preload MODULE)
perfkit_target(perfkit_locks_preload)
get_target_property(sources perfkit_locks SOURCES)
target_sources(perfkit_locks_preload PRIVATE ${sources})
set_target_properties(perfkit_locks_preload PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
target_compile_options(perfkit_locks_preload PRIVATE -fno-plt)
target_include_directories(perfkit_locks_preload PRIVATE "${PROJECT_SOURCE_DIR}")
target_link_libraries(perfkit_locks_preload PRIVATE ${CMAKE_DL_LIBS})
target_link_options(perfkit_locks_preload PRIVATE LINKER:--no-undefined LINKER:--exclude-libs,ALL)
if(PERFKIT_INSTALL)
  install(TARGETS perfkit_locks_preload LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT perfkit)
endif()
