# perfkit_core_sources(<variable> <folder of the project> [CONFIGURE_DEPENDS])
#
# Sets the variable to the sources of the core: all files of src/ that belong to no optional component. Scripts that
# compile the core in other ways use it, too (tests/compile).
set(PERFKIT_COMPONENT_FOLDERS event/pfm sys/locks unwind/dwarf symbolize/dwarf session/dwarf exporters preload itt/library benchmark testing)

function(perfkit_core_sources variable project)
  file(GLOB_RECURSE sources ${ARGN} RELATIVE "${project}/src" "${project}/src/*.cc")
  list(JOIN PERFKIT_COMPONENT_FOLDERS "|" folders)
  list(FILTER sources EXCLUDE REGEX "^(${folders})/")  # of relative names: the project may lie in .../src/testing/
  list(TRANSFORM sources PREPEND "${project}/src/")
  set(${variable} "${sources}" PARENT_SCOPE)
endfunction()
