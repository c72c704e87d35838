// The main of samples_catch2, by Catch2 v2; v3 has it in a library. Compiling it takes longer than all the rest.
#if !__has_include(<catch2/catch_test_macros.hpp>)
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#endif
