# Without the library: the targets of PERFKIT_ENABLE=OFF, and of systems other than Linux. Each is an interface that
# defines PERFKIT_ENABLE=0, so that other projects link the same names on every system. Nothing is compiled, and no
# package is needed. Tests, examples and benchmarks are left out.
add_library(perfkit INTERFACE)
add_library(perfkit::perfkit ALIAS perfkit)
set_target_properties(perfkit PROPERTIES EXPORT_NAME perfkit)
target_compile_features(perfkit INTERFACE cxx_std_20)
target_compile_definitions(perfkit INTERFACE PERFKIT_ENABLE=0)
target_include_directories(perfkit INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                             $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

set(PERFKIT_ENABLE OFF)
set(PERFKIT_COMPONENTS pfm dwarf exporters locks benchmark testing)
foreach(name IN LISTS PERFKIT_COMPONENTS ITEMS testing_alloc)
  add_library(perfkit_${name} INTERFACE)
  add_library(perfkit::${name} ALIAS perfkit_${name})
  set_target_properties(perfkit_${name} PROPERTIES EXPORT_NAME ${name})
  target_link_libraries(perfkit_${name} INTERFACE perfkit)
endforeach()

if(PERFKIT_INSTALL)
  include(Install)
endif()
