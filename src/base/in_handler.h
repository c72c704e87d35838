// Marks functions that run in signal handlers. A handler may have interrupted a sanitizer's own code while that holds
// its locks, so such a function must not be instrumented.
//
// Nor may it call the standard library: templates of the library are compiled here too, and are instrumented wherever
// they are not inlined.
#pragma once

#define PERFKIT_IN_HANDLER __attribute__((no_sanitize("address", "thread", "undefined")))
