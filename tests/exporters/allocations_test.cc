// Counts what this program allocates.
#include "tests/support/counted_new.h"
