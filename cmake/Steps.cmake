# For tests that are scripts of commands: prints each command; the first that fails ends the test.
cmake_minimum_required(VERSION 3.25)
cmake_host_system_information(RESULT cores QUERY NUMBER_OF_LOGICAL_CORES)
math(EXPR jobs "(${cores} + 1) / 2")  # of a build: two tests run at a time

# step(<what it does> <command> <argument>...)
function(step what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE failed COMMAND_ECHO STDOUT)
  if(failed)
    message(FATAL_ERROR "cannot ${what} (${failed})")
  endif()
endfunction()

# quiet_step(<what it does> <command> <argument>...): shows the command's output only if it fails.
function(quiet_step what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE failed COMMAND_ECHO STDOUT OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(failed)
    message("${out}")
    message(FATAL_ERROR "cannot ${what} (${failed})")
  endif()
endfunction()

# step_must_fail(<what it tries> <regex of what it must print> <command> <argument>...)
function(step_must_fail what regex)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE failed COMMAND_ECHO STDOUT OUTPUT_VARIABLE out ERROR_VARIABLE out)
  string(REGEX REPLACE "[ \n]+" " " out "${out}")  # CMake wraps its messages
  if(NOT failed OR NOT out MATCHES "${regex}")
    message(FATAL_ERROR "to ${what} must fail and say '${regex}'; it ended with ${failed} and said: ${out}")
  endif()
endfunction()
