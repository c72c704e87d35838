# folder_sources(<variable> <project> <build> <source>...)
#
# Compiling one file for each folder, as a fast build does, is many times faster than one for each source. Writes
# <name>.cc into <build> for each folder of the core's sources and of <source>..., and returns the names.
include("${CMAKE_CURRENT_LIST_DIR}/../../cmake/CoreSources.cmake")

function(folder_sources variable project build)
  perfkit_core_sources(sources "${project}")
  set(names "")
  foreach(source IN LISTS sources ARGN)
    cmake_path(GET source PARENT_PATH folder)
    cmake_path(RELATIVE_PATH folder BASE_DIRECTORY "${project}")
    string(REPLACE "/" "_" name "${folder}")
    file(APPEND "${build}/${name}.cc" "#include \"${source}\"\n")
    list(APPEND names "${name}")
  endforeach()
  list(REMOVE_DUPLICATES names)
  set(${variable} "${names}" PARENT_SCOPE)
endfunction()
