# Compiles every public header alone, twice included: cmake -DCXX= -DFLAGS= -DINCLUDE= -P headers.cmake
file(GLOB_RECURSE headers RELATIVE "${INCLUDE}" "${INCLUDE}/perfkit/*.h")
list(LENGTH headers count)
if(count LESS 10)
  message(FATAL_ERROR "only ${count} headers in ${INCLUDE}")
endif()

foreach(header IN LISTS headers)
  file(WRITE "${BUILD}/alone.cc" "#include <${header}>\n#include \"${header}\"\n")
  execute_process(COMMAND ${CXX} ${FLAGS} -fsyntax-only -Wall -Wextra -Wpedantic -Werror "-I${INCLUDE}" "${BUILD}/alone.cc"
                  RESULT_VARIABLE failed)
  if(failed)
    message(SEND_ERROR "${header} does not compile alone with ${CXX} ${FLAGS}")
  endif()
endforeach()
message(STATUS "${count} headers compile alone with ${CXX} ${FLAGS}")
