# Mutants of src/event: see run.cmake.
mutant(config_words_swapped FILE src/event/attr.cc TEST event_test
       FROM [[attr.config2 = part.config2;]] TO [[attr.config2 = part.config1;]]
       SAYS "An event with offcore or latency terms counts something else.")
mutant(kernel_excluded_for_user FILE src/event/attr.cc TEST event_test
       FROM [[attr.exclude_kernel = config.exclude_kernel;]] TO [[attr.exclude_kernel = config.exclude_user;]]
       SAYS "cycles:u counts the kernel, and cycles:k counts nothing.")
mutant(precise_max_is_not_precise FILE src/event/attr.cc TEST event_test
       FROM [[attr.precise_ip = config.precise_max ? 3 : config.precise & 3;]] TO [[attr.precise_ip = config.precise & 3;]]
       SAYS "cycles:P samples with skid.")
mutant(range_one_bit_short FILE src/event/bit_field.cc TEST event_test
       FROM [[~uint64_t{0} >> (63 - (*last - *first)) << *first]] TO [[~uint64_t{0} >> (64 - (*last - *first)) << *first]]
       SAYS "The highest bit of each term is refused or lost.")
mutant(field_value_not_checked FILE src/event/bit_field.cc TEST event_test
       FROM [[if (value > field.largest()) return std::nullopt;]] TO [[if (value > field.largest() + 1) return std::nullopt;]]
       SAYS "A value that is one too large is cut: another event is counted.")
mutant(bit_named_twice FILE src/event/bit_field.cc TEST event_test
       FROM [[good = good && bits && (*bits & field.mask) == 0;]] TO [[good = good && bits.has_value();]]
       SAYS "A field that names a bit twice is taken, and its values are spread wrongly.")
mutant(spread_from_the_top FILE src/event/bit_field.cc TEST event_test
       FROM [[left != 0; left &= left - 1, value >>= 1) {]] TO [[left != 0; left &= left - 1) {]]
       SAYS "Each bit of a term is its lowest one: another event is counted.")
mutant(slash_in_quotes FILE src/event/split.cc TEST event_test
       FROM [[if (text[i] == '/' && !quoted) return i;]] TO [[if (text[i] == '/') return i;]]
       SAYS "A quoted term with a slash ends the event too early.")
mutant(group_letters_are_lost FILE src/event/split.cc TEST event_test
       FROM [[element.group_modifiers = base::Trim(rest_.substr(1, end - 1));]] TO [[element.group_modifiers = base::Trim(rest_.substr(1, 0));]]
       SAYS "{cycles,instructions}:u counts the kernel too.")
mutant(cache_op_of_misses FILE src/event/cache_name.cc TEST event_test
       FROM [=[kOps[op][result == 0 ? 1 : 0]]=] TO [=[kOps[op][result == 0 ? 0 : 1]]=]
       SAYS "Cache events have names that perf does not know.")
mutant(cache_default_is_store FILE src/event/cache_name.cc TEST event_test
       FROM [[CacheConfig(*cache, op.value_or(0), result.value_or(0))]] TO [[CacheConfig(*cache, op.value_or(1), result.value_or(0))]]
       SAYS "LLC without an operation counts stores.")
mutant(exclusive_is_pinned FILE src/event/modifiers.cc TEST event_test
       FROM [[  config.exclusive = exclusive;]] TO [[  config.exclusive = pinned;]]
       SAYS "cycles:e is not exclusive.")
mutant(user_only_of_hypervisors FILE src/event/modifiers.cc TEST event_test
       FROM [[config.exclude_hv = config.privilege_given && !hypervisor;]] TO [[config.exclude_hv = config.privilege_given && hypervisor;]]
       SAYS "cycles:u counts the hypervisor.")
mutant(guests_in_user_only FILE src/event/modifiers.cc TEST event_test
       FROM [[context_given ? !guest : user || precise > 0;]] TO [[context_given ? !guest : user;]]
       SAYS "cycles:p counts guests, which perf leaves out: the numbers differ.")
mutant(four_times_precise FILE src/event/modifiers.cc TEST event_test
       FROM [[if (++modifiers.precise > kMaxPrecise)]] TO [[if (modifiers.precise++ > kMaxPrecise)]]
       SAYS "cycles:pppp is taken for an event that is not precise.")
mutant(relative_from_the_begin FILE src/event/tracepoint_format.cc TEST event_test
       FROM [[const uint64_t from = storage == Storage::kDynamic ? 0 : uint64_t{offset} + size;]]
       TO [[const uint64_t from = storage == Storage::kDynamic ? 0 : uint64_t{offset};]]
       SAYS "Texts of tracepoints with __rel_loc begin four bytes early.")
mutant(unsigned_is_signed FILE src/event/tracepoint_format.cc TEST event_test
       FROM [[return is_signed ? int64_t{*base::ReadAt<Narrow>(element, 0)}]] TO [[return !is_signed ? int64_t{*base::ReadAt<Narrow>(element, 0)}]]
       SAYS "Large unsigned fields of tracepoints are negative.")
