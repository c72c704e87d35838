# Compiles loop.cc in three ways and compares .text: cmake -DCXX= -DINCLUDE= -DOBJCOPY= -DBUILD= -P same_text.cmake
function(text_of name)
  set(object "${BUILD}/${name}.o")
  execute_process(
    COMMAND ${CXX} -std=c++20 -O2 -Wall -Wextra -Werror "-I${INCLUDE}" ${ARGN} -c "${CMAKE_CURRENT_LIST_DIR}/loop.cc" -o "${object}"
    COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${OBJCOPY} -O binary --only-section=.text "${object}" "${BUILD}/${name}.text"
                  COMMAND_ERROR_IS_FATAL ANY)
  file(SHA256 "${BUILD}/${name}.text" hash)
  file(SIZE "${BUILD}/${name}.text" size)
  message(STATUS "${name}: ${size} bytes of .text")
  set(${name} ${hash} PARENT_SCOPE)
endfunction()

file(MAKE_DIRECTORY "${BUILD}")
text_of(on)
text_of(off -DPERFKIT_ENABLE=0)
text_of(none -DWITHOUT_MACROS)
if(NOT off STREQUAL none)
  message(FATAL_ERROR "PERFKIT_ENABLE=0 leaves something in .text")
endif()
if(on STREQUAL none)
  message(FATAL_ERROR "PERFKIT_ENABLE=1 leaves nothing in .text: this test compares nothing")
endif()
