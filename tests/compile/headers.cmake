# Compiles the public headers as another project does, without a flag of ours, and with warnings as errors:
#   cmake -DCXX= -DHOW=<alone|together|off> -DFLAGS= -DSOURCE= -DBUILD= -P headers.cmake
#
#   alone     each header, included twice. The standard's and Abseil's headers are precompiled: that takes a third of the
#             time, and `tidy` checks that a header includes those that it uses.
#   together  all headers, and what documents quote: options.cc, snippets.cc and the examples. In one file, because the
#             headers take most of the time.
#   off       as alone, with PERFKIT_ENABLE=0: each header must not reach Abseil, or refuse to be included
cmake_minimum_required(VERSION 3.25)
set(include "${SOURCE}/include")
file(GLOB_RECURSE headers RELATIVE "${include}" "${include}/perfkit/*.h")
list(FILTER headers EXCLUDE REGEX "/off/|/tracy_beside.h")  # included by the others; the last one together with Tracy
list(LENGTH headers count)
if(count LESS 10)
  message(FATAL_ERROR "only ${count} headers in ${include}")
endif()
set(warnings -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wmissing-field-initializers -Werror)

function(compile name text)
  file(WRITE "${BUILD}/${HOW}.cc" "${text}")
  execute_process(COMMAND ${CXX} ${FLAGS} -fsyntax-only ${warnings} "-I${include}" ${ARGN} "${BUILD}/${HOW}.cc"
                  RESULT_VARIABLE failed)
  if(failed)
    message(SEND_ERROR "${name} does not compile ${HOW} with ${CXX} ${FLAGS}")
  endif()
endfunction()

# Precompiles the headers that public headers include and that match a regular expression. Sets `variable` to the options
# with which the compiler uses them; further arguments are other options.
function(precompile variable regex)
  set(lines "")
  foreach(header IN LISTS headers)
    file(STRINGS "${include}/${header}" found REGEX "^#include (${regex})")
    list(APPEND lines ${found})
  endforeach()
  list(REMOVE_DUPLICATES lines)
  list(JOIN lines "\n" text)
  file(WRITE "${BUILD}/standard.h" "${text}\n")
  execute_process(COMMAND ${CXX} ${FLAGS} ${ARGN} ${warnings} -x c++-header "${BUILD}/standard.h" -o "${BUILD}/standard.h.gch"
                  COMMAND_ERROR_IS_FATAL ANY)
  set(${variable} -Winvalid-pch -include "${BUILD}/standard.h" PARENT_SCOPE)
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

# Sets `variable` to lines that include each example in a namespace of its own, if there is what it includes. Its own
# #include lines then find the headers included already, in front of the namespaces. Its main is an ordinary function
# there, which would have to return something.
function(examples_lines variable)
  file(GLOB examples "${SOURCE}/examples/*.cc" "${SOURCE}/examples/*/main.cc")
  list(FILTER examples EXCLUDE REGEX "/game_loop/main[.]cc$")  # of many files, and of SDL and Bullet
  list(LENGTH examples found)
  if(found LESS 20)
    message(FATAL_ERROR "only ${found} examples in ${SOURCE}")
  endif()
  set(heads "")
  set(bodies "#pragma GCC diagnostic ignored \"-Wreturn-type\"\n")
  foreach(example IN LISTS examples)
    file(STRINGS "${example}" lines REGEX "^#include ")
    cmake_path(GET example PARENT_PATH folder)
    cmake_path(RELATIVE_PATH example BASE_DIRECTORY "${SOURCE}" OUTPUT_VARIABLE name)
    string(MAKE_C_IDENTIFIER "${name}" name)
    set(condition "1")
    set(includes "")
    foreach(line IN LISTS lines)
      string(REGEX REPLACE "^#include ([<\"][^>\"]+[>\"]).*" "\\1" file "${line}")
      string(REGEX REPLACE "[<>\"]" "" path "${file}")
      if(file MATCHES "^\"" AND EXISTS "${folder}/${path}")
        set(file "\"${folder}/${path}\"")
      endif()
      string(APPEND condition " && __has_include(${file})")
      string(APPEND includes "#include ${file}\n")
    endforeach()
    string(APPEND heads "#if ${condition}\n${includes}#define HAS_${name} 1\n#endif\n")
    string(APPEND bodies "#ifdef HAS_${name}\nnamespace ${name} {\n#include \"${example}\"\n}\n#endif\n")
  endforeach()
  set(${variable} "${heads}${bodies}" PARENT_SCOPE)
endfunction()

# Compiles one header with PERFKIT_ENABLE=0, and adds it to `refused` if it needs the library.
function(compile_off header)
  include_lines("${header}" lines)
  file(WRITE "${BUILD}/off.cc" "${lines}")
  execute_process(COMMAND ${CXX} ${FLAGS} -DPERFKIT_ENABLE=0 -fsyntax-only -Wfatal-errors -H ${precompiled}
                          ${warnings} "-I${include}" "${BUILD}/off.cc"
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
if(HOW STREQUAL "alone")
  precompile(precompiled "<[a-z_]+>|\"absl/")
elseif(HOW STREQUAL "off")
  precompile(precompiled "<[a-z_]+>" -DPERFKIT_ENABLE=0)
endif()
foreach(header IN LISTS headers)
  include_lines("${header}" lines)
  string(APPEND all "${lines}")
  if(HOW STREQUAL "alone")
    compile("${header}" "${lines}" ${precompiled})
  elseif(HOW STREQUAL "off")
    compile_off("${header}")
  endif()
endforeach()
if(HOW STREQUAL "together")
  foreach(name options snippets)
    string(APPEND all "#include \"${CMAKE_CURRENT_LIST_DIR}/${name}.cc\"\n")
  endforeach()
  examples_lines(examples)
  # Before the examples, which may include it with another library.
  compile("all headers" "${all}${intrinsics}${examples}" "-I${SOURCE}")
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
