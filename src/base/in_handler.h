// What runs in a signal handler may have interrupted a sanitizer's own code, holding its locks: it must not call into
// it.
//
// So each function on such a path is marked, and calls nothing of the standard library: its templates are compiled here
// too, and instrumented where they are not inlined.
#pragma once

#define PERFKIT_IN_HANDLER __attribute__((no_sanitize("address", "thread", "undefined")))
