# Compiles each public header, alone and included twice, or all together with options.cc; or alone with
# PERFKIT_ENABLE=0, when it must not reach Abseil, or refuse to be included:
#   cmake -DCXX= -DHOW=<alone|together|off> -DFLAGS= -DINCLUDE= -DBUILD= -P headers.cmake
cmake_minimum_required(VERSION 3.25)
file(GLOB_RECURSE headers RELATIVE "${INCLUDE}" "${INCLUDE}/perfkit/*.h")
list(FILTER headers EXCLUDE REGEX "/off/|/tracy_beside.h")  # included by the others; the last one together with Tracy
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

# Sets `variable` to the lines that include a header. Adapters need their library, and those throw.
set(library_of_task_boost_fiber boost/fiber/context.hpp)
set(library_of_task_tbb oneapi/tbb/task.h)
function(include_lines header variable)
  cmake_path(GET header STEM name)
  set(lines "#include <${header}>\n#include \"${header}\"\n")
  if(library_of_${name})
    set(lines "#if defined(__cpp_exceptions) && __has_include(<${library_of_${name}}>)\n${lines}#endif\n")
  endif()
  set(${variable} "${lines}" PARENT_SCOPE)
endfunction()

# Compiles one header with PERFKIT_ENABLE=0, and adds it to `refused` if it needs the library.
function(compile_off header)
  include_lines("${header}" lines)
  file(WRITE "${BUILD}/off.cc" "${lines}")
  execute_process(COMMAND ${CXX} ${FLAGS} -DPERFKIT_ENABLE=0 -fsyntax-only -Wfatal-errors -H
                          ${warnings} "-I${INCLUDE}" "${BUILD}/off.cc"
                  RESULT_VARIABLE failed ERROR_VARIABLE out)
  if(failed AND out MATCHES "#error \"this header needs the library")
    set(refused ${refused} ${header} PARENT_SCOPE)
  elseif(failed OR out MATCHES "/absl/")
    string(REGEX REPLACE "(^|\n)[.!x]+ [^\n]*" "" out "${out}")
    message(SEND_ERROR "${header} includes Abseil with PERFKIT_ENABLE=0, or does not compile: ${out}")
  endif()
endfunction()

set(all "")
set(refused "")
foreach(header IN LISTS headers)
  include_lines("${header}" lines)
  string(APPEND all "${lines}")
  if(HOW STREQUAL "alone")
    compile("${header}" "${lines}${intrinsics}")
  elseif(HOW STREQUAL "off")
    compile_off("${header}")
  endif()
endforeach()
if(HOW STREQUAL "together")
  compile("all headers" "${all}#include \"${CMAKE_CURRENT_LIST_DIR}/options.cc\"\n")
endif()
# Those that perfkit/enable.h promises.
foreach(name annotations count counter event_specs event_type frame frame_counter itt measure measured_events optick scope
             target task_boost_fiber task_counter task_coroutine task_job task_tbb thread_slots tracy warmup)
  if("perfkit/${name}.h" IN_LIST refused)
    message(SEND_ERROR "${name}.h needs the library")
  endif()
endforeach()
list(LENGTH refused needing)
math(EXPR count "${count} - ${needing}")
message(STATUS "${count} headers compile ${HOW} with ${CXX} ${FLAGS}")
