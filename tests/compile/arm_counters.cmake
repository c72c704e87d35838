# Checks which register each number reads on arm64, by the assembler and another project's disassembler, without such a
# machine. Two well-known libraries swap counters 12 and 13.
#   cmake -DCXX= -DOBJDUMP= -DINCLUDE= -DBUILD= -P arm_counters.cmake
set(text "#include \"perfkit/detail/user_page.h\"\nstatic_assert(perfkit::kHasCounterRegisters);\n")
foreach(n RANGE 32)  # 32 is none
  string(APPEND text "extern \"C\" uint64_t Read${n}() { return perfkit::PageAccess::Register(${n}); }\n")
endforeach()
file(MAKE_DIRECTORY "${BUILD}")
file(WRITE "${BUILD}/counters.cc" "${text}")
execute_process(COMMAND ${CXX} -std=c++20 -O1 -Wall -Wextra -Werror "-I${INCLUDE}" -c "${BUILD}/counters.cc"
                        -o "${BUILD}/counters.o" COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${OBJDUMP} --disassemble --no-show-raw-insn "${BUILD}/counters.o" OUTPUT_VARIABLE code
                        COMMAND_ERROR_IS_FATAL ANY)

foreach(n RANGE 32)
  if(NOT code MATCHES "<Read${n}>:\n(([^\n]+\n)+)")
    message(FATAL_ERROR "no code for counter ${n} in\n${code}")
  endif()
  string(REGEX MATCHALL "pmu?[a-z]*cntr[0-9]*_el[0-9]|s[0-9]_[0-9]_c[0-9]+_c[0-9]+_[0-9]" found "${CMAKE_MATCH_1}")
  set(expected "pmevcntr${n}_el0")
  if(n EQUAL 31)
    set(expected "pmccntr_el0")
  elseif(n EQUAL 32)
    set(expected "")
  endif()
  if(NOT found STREQUAL expected)
    message(SEND_ERROR "counter ${n} is read from '${found}', not from '${expected}'")
  endif()
endforeach()
message(STATUS "33 numbers read what they should")
