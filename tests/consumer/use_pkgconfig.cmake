# Finds pkg-config, as `pkg_config`, and lets it find the perfkit in PREFIX. Tells ctest if it is not installed.
find_program(pkg_config pkg-config)
if(NOT pkg_config)
  message("SKIPPED: all tests: pkg-config is not installed")
endif()

file(GLOB_RECURSE pc "${PREFIX}/perfkit.pc")
cmake_path(GET pc PARENT_PATH folder)
set(ENV{PKG_CONFIG_PATH} "${folder}")
file(MAKE_DIRECTORY "${BUILD}")
