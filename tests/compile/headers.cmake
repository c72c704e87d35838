# Compiles each public header, alone and included twice, or all together with options.cc:
#   cmake -DCXX= -DHOW=<alone|together> -DFLAGS= -DINCLUDE= -DBUILD= -P headers.cmake
file(GLOB_RECURSE headers RELATIVE "${INCLUDE}" "${INCLUDE}/perfkit/*.h")
list(LENGTH headers count)
if(count LESS 10)
  message(FATAL_ERROR "only ${count} headers in ${INCLUDE}")
endif()
set(warnings -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wmissing-field-initializers -Werror)

function(compile name text)
  file(WRITE "${BUILD}/${HOW}.cc" "${text}")
  execute_process(COMMAND ${CXX} ${FLAGS} -fsyntax-only ${warnings} "-I${INCLUDE}" "${BUILD}/${HOW}.cc"
                  RESULT_VARIABLE failed)
  if(failed)
    message(SEND_ERROR "${name} does not compile ${HOW} with ${CXX} ${FLAGS}")
  endif()
endfunction()

# That header takes half a second to compile, for two instructions that have builtins.
set(intrinsics "#ifdef _X86INTRIN_H_INCLUDED\n#error \"<x86intrin.h> is included\"\n#endif\n")

set(all "")
foreach(header IN LISTS headers)
  string(APPEND all "#include <${header}>\n")
  if(HOW STREQUAL "alone")
    compile("${header}" "#include <${header}>\n#include \"${header}\"\n${intrinsics}")
  endif()
endforeach()
if(HOW STREQUAL "together")
  compile("all headers" "${all}#include \"${CMAKE_CURRENT_LIST_DIR}/options.cc\"\n")
endif()
message(STATUS "${count} headers compile ${HOW} with ${CXX} ${FLAGS}")
