# Compares the functions of the hot headers' classes that the library exports with those that api.cc calls: all. api.cc is
# also compiled with PERFKIT_ENABLE=0, so a function that is new in one of them is missed in the other.
#   cmake -DCXX= -DNM= -DINCLUDE= -DLIBRARY= -DBUILD= -P in_step.cmake
file(MAKE_DIRECTORY "${BUILD}")
# -O0: calls from inline functions stay calls.
execute_process(COMMAND ${CXX} -std=c++20 -O0 "-I${INCLUDE}" -c "${CMAKE_CURRENT_LIST_DIR}/api.cc" -o "${BUILD}/api.o"
                COMMAND_ERROR_IS_FATAL ANY)

# names_of(<variable> <file> <types of symbols>): the functions of those classes in an object or library.
function(names_of variable file types)
  execute_process(COMMAND ${NM} -C "${file}" OUTPUT_VARIABLE symbols ERROR_QUIET COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX REPLACE "[;[]|]" "_" symbols "${symbols}")
  string(CONCAT classes "FrameCounter|IttCollection|TaskCounter|ThreadSlots|Warmup|CounterSet|Counter|CounterReader|ScopeTotals|CounterScope|Count|Cost|"
         "Measurement|Comparison|ScalingResult")
  string(REGEX MATCHALL " ${types} perfkit::((${classes})::[^\n]+|(ReadPathName|EventClassName)[(][^\n]+)" found "${symbols}")
  list(TRANSFORM found REPLACE "^ ${types} " "")
  list(REMOVE_DUPLICATES found)
  set(${variable} "${found}" PARENT_SCOPE)
endfunction()
names_of(exported "${LIBRARY}" "T")
names_of(called "${BUILD}/api.o" "U")
list(LENGTH exported count)
if(count LESS 50)
  message(FATAL_ERROR "only ${count} functions in ${LIBRARY}")
endif()

# What takes or returns types that need the library, and what is private and called by no inline function.
list(FILTER exported EXCLUDE REGEX "perfkit::Metric const|EventConfig|CounterSet::event[(]|Impl|CounterSet::(CounterSet|Switch)[(]|Counter::Counter[(]")
list(REMOVE_ITEM exported ${called})
if(exported)
  list(JOIN exported "\n  " exported)
  message(FATAL_ERROR "tests/compile/off/api.cc does not call\n  ${exported}\nDeclare them in include/perfkit/off, too")
endif()
message(STATUS "${count} functions")
