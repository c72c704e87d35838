# perfkit_component(<name> FOUND <bool> SOURCES <folder>... LIBRARIES <target>... HEADERS <file>... [NEEDS <text>])
#
# An optional component: the library perfkit::<name> from <folder>s, linked to the core and to LIBRARIES. If its
# dependency was not found, only says that it NEEDS that. HEADERS (in include/perfkit/) are installed with it only. Sets
# PERFKIT_WITH_<NAME>.
set(PERFKIT_COMPONENTS "")
set(PERFKIT_COMPONENT_HEADERS "")

function(perfkit_component name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "NEEDS" "FOUND;SOURCES;LIBRARIES;HEADERS")
  list(TRANSFORM arg_SOURCES PREPEND "${PROJECT_SOURCE_DIR}/")
  list(TRANSFORM arg_SOURCES APPEND "/*.cc")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${arg_SOURCES})
  set(PERFKIT_COMPONENT_HEADERS ${PERFKIT_COMPONENT_HEADERS} ${arg_HEADERS} PARENT_SCOPE)
  string(TOUPPER ${name} upper)
  set(PERFKIT_WITH_${upper} OFF PARENT_SCOPE)
  if(NOT arg_FOUND OR NOT sources)
    if(arg_NEEDS AND NOT BUILD_SHARED_LIBS)
      message(STATUS "perfkit::${name} is left out: it needs ${arg_NEEDS}")
    endif()
    return()
  endif()
  add_library(perfkit_${name} ${sources})
  perfkit_library(perfkit_${name})
  target_link_libraries(perfkit_${name} PUBLIC perfkit PRIVATE ${arg_LIBRARIES})
  set_target_properties(perfkit_${name} PROPERTIES PERFKIT_HEADERS "${arg_HEADERS}")
  set(PERFKIT_WITH_${upper} ON PARENT_SCOPE)
  set(PERFKIT_COMPONENTS ${PERFKIT_COMPONENTS} ${name} PARENT_SCOPE)
endfunction()
