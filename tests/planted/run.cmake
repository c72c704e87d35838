# Plants one error after another (errors.cmake) into a copy of the sources, and expects the named check to fail.
#   cmake -DCXX= -DCXX_ARM= -DOBJDUMP_ARM= -DMAIN= -DSOURCE= -DBUILD= -P run.cmake
# First, each check must pass without any error. MAIN is the library with the tests' main.
#
# A check is one test source and the few sources that it needs, so that it is built in seconds.
cmake_minimum_required(VERSION 3.25)
include("${CMAKE_CURRENT_LIST_DIR}/../support/plant.cmake")
set(sources_of_user_page tests/count/user_page_test.cc)
set(sources_of_torn_page tests/count/torn_page_test.cc)
set(sources_of_rdpmc tests/count/rdpmc_test.cc)
set(sources_of_scale tests/base/scale_test.cc)
set(sources_of_event_table tests/event/event_table_test.cc src/event/event_table.cc src/event/cache_name.cc)
set(checks user_page torn_page rdpmc scale event_table arm_counters)

file(REMOVE_RECURSE "${BUILD}")
foreach(folder include src/base src/event src/sys tests/base tests/compile tests/count tests/event tests/support)
  cmake_path(GET folder PARENT_PATH parent)
  file(COPY "${SOURCE}/${folder}" DESTINATION "${BUILD}/${parent}")
endforeach()

# Catch2's header takes longer to compile than all the checks, so GCC gets it precompiled: the compiler looks for a file
# with the ending .gch first.
set(parsed "${BUILD}/parsed.h")
set(flags -std=c++20 -O1 -w -DCATCH_CONFIG_RUNTIME_STATIC_REQUIRE "-I${BUILD}" "-I${BUILD}/include")
file(WRITE "${parsed}" "#include <catch2/catch.hpp>\n")
execute_process(COMMAND ${CXX} ${flags} -x c++-header "${parsed}" -o "${parsed}.gch" COMMAND_ERROR_IS_FATAL ANY)
list(APPEND flags -include "${parsed}")

# Runs a check in the current copy. Sets `failed`, and `output` to its output; stops if it cannot be built. `can_run` is
# false if the check cannot run here.
function(run check)
  set(can_run ON PARENT_SCOPE)
  if(check STREQUAL "arm_counters")
    if(NOT CXX_ARM OR NOT OBJDUMP_ARM)
      set(can_run OFF PARENT_SCOPE)
      return()
    endif()
    execute_process(
      COMMAND ${CMAKE_COMMAND} "-DCXX=${CXX_ARM}" "-DOBJDUMP=${OBJDUMP_ARM}" "-DINCLUDE=${BUILD}/include"
              "-DBUILD=${BUILD}/arm_counters" -P "${BUILD}/tests/compile/arm_counters.cmake"
      RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
    set(sign_of_failure "is read from")
  else()
    list(TRANSFORM sources_of_${check} PREPEND "${BUILD}/" OUTPUT_VARIABLE sources)
    execute_process(COMMAND ${CXX} ${flags} ${sources} "${MAIN}" -o "${BUILD}/${check}" COMMAND_ERROR_IS_FATAL ANY)
    execute_process(COMMAND "${BUILD}/${check}" RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output
                    TIMEOUT 60)
    set(sign_of_failure "FAILED:")
  endif()
  if(output MATCHES "SKIPPED: ([^\n]*)" OR output MATCHES "No tests ran")
    set(can_run OFF PARENT_SCOPE)
  elseif(result EQUAL 0)
    set(failed OFF PARENT_SCOPE)
  elseif(result EQUAL 1 AND output MATCHES "${sign_of_failure}")
    set(failed ON PARENT_SCOPE)
  else()
    message(FATAL_ERROR "${check} neither passed nor failed (${result}):\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

foreach(check IN LISTS checks)
  run(${check})
  set(can_run_${check} ${can_run})
  if(can_run AND failed)
    message(FATAL_ERROR "${check} fails without any error:\n${output}")
  endif()
endforeach()

set(seen 0)
function(planted name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "FILE;FROM;TO;SEEN_BY" "")
  if(NOT arg_SEEN_BY IN_LIST checks)
    message(FATAL_ERROR "${name}: there is no check '${arg_SEEN_BY}'")
  endif()
  file(READ "${BUILD}/${arg_FILE}" text)
  plant_text(edited "${text}" "${arg_FROM}" "${arg_TO}")
  if(edited_PROBLEM)
    message(FATAL_ERROR "${name}: ${arg_FILE} ${edited_PROBLEM}:\n${arg_FROM}")
  endif()
  if(NOT can_run_${arg_SEEN_BY})
    message("SKIPPED: ${name}: ${arg_SEEN_BY} cannot run here")
    return()
  endif()
  file(WRITE "${BUILD}/${arg_FILE}" "${edited}")
  run(${arg_SEEN_BY})
  file(WRITE "${BUILD}/${arg_FILE}" "${text}")
  if(NOT failed)
    message(SEND_ERROR "${name}: no test saw it; ${arg_SEEN_BY} passed")
    return()
  endif()
  message(STATUS "${name}: seen by ${arg_SEEN_BY}")
  math(EXPR seen "${seen} + 1")
  set(seen ${seen} PARENT_SCOPE)
endfunction()

include("${CMAKE_CURRENT_LIST_DIR}/errors.cmake")
message(STATUS "${seen} planted errors were seen")
