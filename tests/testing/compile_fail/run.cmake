# cmake -D COMPILER=... -D SOURCE=limits.cc -D CASE=n -D INCLUDE=dir -D CATCH2=dir -P run.cmake: the case must compile,
# and its broken twin must not; where it is about a limit, the compiler must quote the remedy. CATCH2 has
# catch2/catch.hpp, also for version 3 (cmake/Catch2.cmake).
set(includes ${INCLUDE} ${CATCH2})
list(TRANSFORM includes PREPEND "-I")
set(command "${COMPILER}" -std=c++20 -fsyntax-only ${includes} -DCASE=${CASE} "${SOURCE}")
execute_process(COMMAND ${command} RESULT_VARIABLE failed ERROR_VARIABLE said)
if(failed)
  message(FATAL_ERROR "case ${CASE} must compile:\n${said}")
endif()
execute_process(COMMAND ${command} -DBROKEN RESULT_VARIABLE failed ERROR_VARIABLE said)
if(NOT failed)
  message(FATAL_ERROR "case ${CASE} must not compile when it is broken")
endif()
if(CASE LESS 6 AND NOT said MATCHES "FixedLimitOnNoisyEventNeedsAMachine_UseOn")
  message(FATAL_ERROR "case ${CASE} fails for another reason:\n${said}")
endif()
