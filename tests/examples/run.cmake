# Runs an example and looks at what it prints: cmake -DPROGRAM= -DARGUMENTS= -DREGEX= -P run.cmake
execute_process(COMMAND ${PROGRAM} ${ARGUMENTS} RESULT_VARIABLE failed OUTPUT_VARIABLE out ERROR_VARIABLE out
                        ECHO_OUTPUT_VARIABLE ECHO_ERROR_VARIABLE)
if(failed)
  message(FATAL_ERROR "it ended with ${failed}")
endif()
if(NOT out MATCHES "${REGEX}")
  message(FATAL_ERROR "it printed nothing like '${REGEX}'")
endif()
