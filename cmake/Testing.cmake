# Registers tests. Each runs under tests/runner/runner, which keeps its skips and times for the last test.
#
# Labels: unit (the programs of tests/<module>), user (the same as an ordinary user), heavy (campaigns, only on
# demand), leg, pmu (in an emulated machine), consumer, compile, tidy. PERFKIT_LEG is set inside a leg;
# PERFKIT_TEST_MODULES narrows the unit tests: modules, or single files of them, as session/storm.
set(PERFKIT_NOTES "${PROJECT_BINARY_DIR}/notes")
file(REMOVE_RECURSE "${PERFKIT_NOTES}")
file(MAKE_DIRECTORY "${PERFKIT_NOTES}")
define_property(GLOBAL PROPERTY PERFKIT_TESTS BRIEF_DOCS "Every test, so that the last one can come last")
define_property(GLOBAL PROPERTY PERFKIT_TEST_PROGRAMS BRIEF_DOCS "The programs of perfkit_unit_test")

# CTest starts the tests of the highest cost first: CPU-seconds of the longest tests, as the last test prints them.
set(PERFKIT_COSTS leg.thread.build=350 leg.address.build=340 leg.clang.build=178 pmu.modules=164
    leg.address.session_test=75 leg.address.sample_test=62 leg.address.exporters_test=33)

foreach(tool runner tally)
  add_executable(${tool} "${PROJECT_SOURCE_DIR}/tests/runner/${tool}.cc")
  perfkit_target(${tool})
endforeach()

# perfkit_add_test(<name> COMMAND <program> <argument>... [LABELS ...] [ORDINARY_USER] [LIMIT <seconds>]
#                  [PROPERTIES <key> <value>...])
# The program prints "SKIPPED: test: reason" for cases that cannot run here, and returns 77 if all were skipped. One that
# has not ended after LIMIT (600) hangs; the runner says where. CTest's own limit is for a runner that hangs.
function(perfkit_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "ORDINARY_USER" "LIMIT" "COMMAND;LABELS;PROPERTIES")
  if(NOT arg_LIMIT)
    set(arg_LIMIT 600)
  endif()
  math(EXPR timeout "${arg_LIMIT} + 120")
  set(options --notes "${PERFKIT_NOTES}/${name}.txt" --limit ${arg_LIMIT})
  if(arg_ORDINARY_USER)
    list(APPEND options --user ordinary)
  endif()
  if(PERFKIT_SANITIZE STREQUAL "thread")
    list(APPEND options --aslr off)
  endif()
  list(POP_FRONT arg_COMMAND program)
  if(TARGET ${program})
    set(program $<TARGET_FILE:${program}>)
  endif()
  add_test(NAME ${name} COMMAND runner ${options} -- ${program} ${arg_COMMAND})
  set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT ${timeout} LABELS "${arg_LABELS}" ${arg_PROPERTIES})
  if("${PERFKIT_COSTS}" MATCHES "(^|;)${name}=([0-9]+)")
    set_tests_properties(${name} PROPERTIES COST ${CMAKE_MATCH_2})
  endif()
  set_property(GLOBAL APPEND PROPERTY PERFKIT_TESTS ${name})
endfunction()

# perfkit_skipped_test(<name> <reason>): a test that cannot run here, listed so that its absence is visible.
function(perfkit_skipped_test name reason)
  perfkit_add_test(${name} COMMAND ${CMAKE_COMMAND} -E echo "SKIPPED: all tests: ${reason}")
  set_tests_properties(${name} PROPERTIES SKIP_REGULAR_EXPRESSION "SKIPPED: all tests")
endfunction()

# perfkit_test_options(<target>): optimizing a test takes longer than it saves. A fast build compiles tests at -Og, in half
# the time; under UndefinedBehaviorSanitizer -O0 takes a third of the time of -O1. Except for tests that count the
# instructions of their own code, under ThreadSanitizer also its page faults, and, without sanitizers, for count_test,
# which tests the inline read paths as users compile them. What is compiled in another way than the rest can't share its precompiled headers.
set(PERFKIT_TESTS_OF_OWN_CODE step_test measure_test testing_test)
if(NOT PERFKIT_SANITIZE)
  list(APPEND PERFKIT_TESTS_OF_OWN_CODE count_test)
elseif(PERFKIT_SANITIZE STREQUAL "thread")
  list(APPEND PERFKIT_TESTS_OF_OWN_CODE benchmark_test)
endif()
function(perfkit_test_options target)
  if(target IN_LIST PERFKIT_TESTS_OF_OWN_CODE)
    return()
  endif()
  if(PERFKIT_SANITIZE MATCHES "undefined")
    target_compile_options(${target} PRIVATE -O0)
  elseif(PERFKIT_FAST_BUILD)
    target_compile_options(${target} PRIVATE -Og)
  endif()
endfunction()

# perfkit_test_program(<target> <source>...): a program of test cases, with the main of tests/support.
function(perfkit_test_program target)
  add_executable(${target} ${ARGN})
  perfkit_target(${target})
  perfkit_test_options(${target})
  target_link_libraries(${target} PRIVATE perfkit_test_main)
  if((PERFKIT_PRECOMPILE OR PERFKIT_FAST_BUILD) AND NOT (PERFKIT_FAST_BUILD AND target IN_LIST PERFKIT_TESTS_OF_OWN_CODE))
    target_precompile_headers(${target} REUSE_FROM perfkit_test_main)
  endif()
  if(PERFKIT_FAST_BUILD AND NOT target STREQUAL "pmu_test")  # as one file; not where each file is for another machine
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
  endif()
endfunction()

# perfkit_unit_test(<module> SOURCES ... [LIBRARIES ...]): the program <module>_test, run as the current user and as an
# ordinary user; in a leg as the current user only if what it tests asks for no rights, or is the same code with or without
# them. Its test cases tagged [.heavy] are a test of their own.
set(PERFKIT_TESTS_ONCE_IN_LEGS base elf exporters faults faults_dwarf fuzz fuzz_dwarf profile ring session session_dwarf
    step symbolize symbolize_dwarf unwind unwind_dwarf)
function(perfkit_unit_test module)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBRARIES")
  set(target ${module}_test)
  perfkit_test_program(${target} ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE ${arg_LIBRARIES})
  set_property(GLOBAL APPEND PROPERTY PERFKIT_TEST_PROGRAMS ${target})
  # Some hypervisors lose a process's breakpoints, or send it a trap of another one, while another process is stepped.
  set(lock "")
  foreach(source IN LISTS arg_SOURCES)
    file(STRINGS "${source}" found REGEX "kTrapFlag|single_step|[Ss]tepper|[Bb]reakpoint|\"mem:" LIMIT_COUNT 1)
    if(found)
      set(lock RESOURCE_LOCK debug_registers)
      set_property(GLOBAL APPEND PROPERTY PERFKIT_DEBUGGING_TEST_PROGRAMS ${target})
      break()
    endif()
  endforeach()
  perfkit_add_test(${target} COMMAND ${target} LABELS unit PROPERTIES ${lock})
  if(NOT PERFKIT_LEG OR NOT module IN_LIST PERFKIT_TESTS_ONCE_IN_LEGS)
    perfkit_add_test(${target}@user ORDINARY_USER COMMAND ${target} LABELS unit user PROPERTIES ${lock})
  endif()
  foreach(source IN LISTS arg_SOURCES)
    file(STRINGS "${source}" heavy REGEX "\\[\\.heavy\\]" LIMIT_COUNT 1)
    if(heavy)
      # All of them together; a walk alone takes an hour (tests/support/walk.h).
      perfkit_add_test(${target}.heavy COMMAND ${target} [.heavy] LABELS heavy LIMIT 14400)
      break()
    endif()
  endforeach()
endfunction()

# The last tests. `failures` says once more, at the end of the output, what the failed ones said. The output of `skips` is
# always shown, by the test preset. The target suite_times writes its times into a page.
function(perfkit_skip_tally)
  get_property(tests GLOBAL PROPERTY PERFKIT_TESTS)
  get_property(legs GLOBAL PROPERTY PERFKIT_LEGS)
  set(folders "main=${PERFKIT_NOTES}")
  foreach(leg IN LISTS legs)
    list(APPEND folders "${leg}=${PROJECT_BINARY_DIR}/legs/${leg}/notes")
  endforeach()
  set(log --build "${PROJECT_BINARY_DIR}/.ninja_log")
  add_test(NAME skips COMMAND tally ${log} ${folders})
  add_test(NAME failures COMMAND tally --failures "${PERFKIT_NOTES}")
  set_tests_properties(skips failures PROPERTIES DEPENDS "${tests}")
  add_custom_target(suite_times COMMAND tally ${log} --page "${PROJECT_SOURCE_DIR}/docs/testing-perfkit.md" ${folders} VERBATIM)
endfunction()
