# What perfkit::benchmark needs beyond an ordinary component: link options for its users, and the preload library.
if(NOT TARGET perfkit_benchmark)
  return()
endif()

# benchmark.h includes Google Benchmark's header; the library itself does not use it.
target_link_libraries(perfkit_benchmark INTERFACE benchmark::benchmark)

# Calls of these members of benchmark::State go through src/benchmark/adapter/wrap.cc: so pauses are excluded from the
# counts, and a benchmark's own label keeps the note of missing counts, but is not shown on the next benchmark. SetLabel
# and SkipWithError have two symbols, before and since 1.8.
set(PERFKIT_WRAPPED
    _ZN9benchmark5State11PauseTimingEv
    _ZN9benchmark5State12ResumeTimingEv
    _ZN9benchmark5State16StartKeepRunningEv
    _ZN9benchmark5State17FinishKeepRunningEv
    _ZN9benchmark5State8SetLabelEPKc
    _ZN9benchmark5State8SetLabelERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE
    _ZN9benchmark5State13SkipWithErrorEPKc
    _ZN9benchmark5State13SkipWithErrorERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE
    _ZN9benchmark5State15SkipWithMessageERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE)
foreach(name IN LISTS PERFKIT_WRAPPED)
  target_link_options(perfkit_benchmark PUBLIC "LINKER:--wrap=${name}")
endforeach()

# LD_PRELOAD=libperfkit_benchmark_preload.so: counters in unchanged programs that link Google Benchmark dynamically. The
# library must not load Google Benchmark itself, so it links the adapter's file, not its target.
file(GLOB preload_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/benchmark/preload/*.cc")
add_library(perfkit_benchmark_preload MODULE ${preload_sources})
perfkit_target(perfkit_benchmark_preload)
add_dependencies(perfkit_benchmark_preload perfkit_benchmark)
set_target_properties(perfkit_benchmark_preload PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
target_include_directories(
  perfkit_benchmark_preload
  PRIVATE "${PROJECT_SOURCE_DIR}" $<TARGET_PROPERTY:benchmark::benchmark,INTERFACE_INCLUDE_DIRECTORIES>)
target_link_libraries(perfkit_benchmark_preload PRIVATE $<TARGET_FILE:perfkit_benchmark> perfkit ${CMAKE_DL_LIBS})
target_link_options(perfkit_benchmark_preload PRIVATE LINKER:--exclude-libs,ALL
                    LINKER:--wrap=_ZN9benchmark8internal17InitializeStreamsEv)
if(NOT PERFKIT_SANITIZE)  # clang links a sanitizer's runtime into programs only
  target_link_options(perfkit_benchmark_preload PRIVATE LINKER:--no-undefined)
endif()

if(PERFKIT_INSTALL)
  install(TARGETS perfkit_benchmark_preload LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT perfkit)
endif()
