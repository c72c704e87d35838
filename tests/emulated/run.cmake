# Runs a program of another architecture: cmake -DQEMU= -DROOT=<its packages> -DABSENT=<file> -DPROGRAM= -P run.cmake
# If ABSENT exists, it says why the program could not be built.
if(EXISTS "${ABSENT}")
  file(READ "${ABSENT}" reason)
  message("SKIPPED: all tests: ${reason}")
  return()
endif()
execute_process(COMMAND "${QEMU}" -L /usr/aarch64-linux-gnu -E "LD_LIBRARY_PATH=${ROOT}/usr/lib/aarch64-linux-gnu" "${PROGRAM}"
                RESULT_VARIABLE result)
if(result)  # a number, or the name of a signal
  message(FATAL_ERROR "${PROGRAM} ended with ${result}")
endif()
