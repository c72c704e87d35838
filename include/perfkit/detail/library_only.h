// Included by headers that need the library, before anything else.
#pragma once

#include "perfkit/enable.h"

#if !PERFKIT_ENABLE
#error "this header needs the library of perfkit, which PERFKIT_ENABLE=0 leaves out: see perfkit/enable.h"
#endif
