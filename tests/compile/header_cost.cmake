# Checks what the headers of a hot loop add to a file, by the text that the compiler must parse: bytes after the
# preprocessor, as a multiple of those of <string>, <vector> and <functional>, which most programs include. That is the
# same on any machine and under any load; the time of a compilation is not, but follows it.
#   cmake -DCXX= -DINCLUDE= -DBUILD= -P header_cost.cmake
#
# g++ 12 on two CPUs with other work took 0.33 s for those three, 0.27 s for count.h and 0.62 s for frame_counter.h, of
# which 0.06 s are perfkit's own text. With <chrono>, frame_counter.h took 0.73 s.
cmake_minimum_required(VERSION 3.25)
function(text_size text variable)
  file(WRITE "${BUILD}/cost.cc" "${text}")
  execute_process(COMMAND ${CXX} -std=c++20 -E -P "-I${INCLUDE}" "${BUILD}/cost.cc" OUTPUT_VARIABLE out
                          COMMAND_ERROR_IS_FATAL ANY)
  string(LENGTH "${out}" length)
  set(${variable} ${length} PARENT_SCOPE)
endfunction()

text_size("#include <string>\n#include <vector>\n#include <functional>\n" standard)
foreach(limit count=85 frame_counter=160)
  string(REGEX MATCH "([a-z_]+)=([0-9]+)" ignored "${limit}")
  set(header ${CMAKE_MATCH_1})
  set(most ${CMAKE_MATCH_2})
  text_size("#include <perfkit/${header}.h>\n" size)
  math(EXPR percent "100 * ${size} / ${standard}")
  message(STATUS "${header}.h: ${size} bytes, ${percent} % of <string>, <vector> and <functional>")
  if(percent GREATER most)
    message(SEND_ERROR "${header}.h is ${percent} % of those, and may be ${most} %: what does it include?")
  endif()
endforeach()
