# Mutants of src/base: see run.cmake.
mutant(range_loses_its_last_cpu FILE src/base/cpu_list.cc TEST base_test
       FROM [[cpu <= *last]] TO [[cpu < *last]]
       SAYS "The last CPU of each range is left out: a counter per CPU misses what runs there.")
mutant(slice_sum_overflows FILE src/base/cursor.h TEST base_test
       FROM [[size > bytes.size() - offset]] TO [[offset + size > bytes.size()]]
       SAYS "A huge size in an ELF file wraps around, and memory outside the file is read.")
mutant(short_read_is_taken FILE src/base/dwarf_reader.h TEST base_test
       FROM [[if (sizeof(T) > bytes_.size() - at_) return]] TO [[if (sizeof(T) > bytes_.size() - at_ + 1) return]]
       SAYS "A number cut off by the end of a section is read one byte past that end.")
mutant(sleb_sign_bit FILE src/base/dwarf_reader.h TEST base_test
       FROM [[value >> (bits - 1) & 1]] TO [[value >> (bits - 2) & 1]]
       SAYS "Signed numbers of DWARF get the wrong sign: CFA offsets and line advances are wrong.")
mutant(three_bytes_shifted_by_eight FILE src/base/dwarf_reader.h TEST base_test
       FROM [[uint64_t{U8()} << 16]] TO [[uint64_t{U8()} << 8]]
       SAYS "DW_FORM_strx3 finds another string: a function gets another's name.")
mutant(long_unit_has_short_offsets FILE src/base/dwarf_reader.h TEST base_test
       FROM [[*offset_bytes = length == 0xffffffff ? 8 : 4;]] TO [[*offset_bytes = length == 0xffffffff ? 4 : 4;]]
       SAYS "64-bit DWARF is read with 4-byte offsets: all that follows is garbage.")
mutant(inner_range_hides_the_outer FILE src/base/flatten.h TEST base_test
       FROM [[if (top.end <= at) open.pop_back();]] TO [[open.pop_back();]]
       SAYS "The rest of a function after a function nested in it has no name.")
mutant(ties_reversed FILE src/base/flatten.h TEST base_test
       FROM [[ties == Ties::kGreatest ? a.id < b.id]] TO [[ties == Ties::kSmallest ? a.id < b.id]]
       SAYS "Of two equal ranges the wrong one is named.")
mutant(address_at_a_begin FILE src/base/last_at.h TEST base_test
       FROM [[return begin_of(*first) <= address]] TO [[return begin_of(*first) < address]]
       SAYS "The first address of the first function has no name.")
mutant(search_steps_short FILE src/base/last_at.h TEST base_test
       FROM [[first += begin_of(first[half]) <= address]] TO [[first += begin_of(first[half]) < address]]
       SAYS "The first address of a function is given to the function before it.")
mutant(freed_under_a_reader FILE src/base/published.h TEST base_test
       FROM [[if (HasReaders(1 - phase)) return;]] TO [[if (HasReaders(phase) && HasReaders(1 - phase)) return;]]
       SAYS "A signal handler walks with unwind tables that were freed.")
mutant(reader_counted_in_one_phase FILE src/base/published.h TEST base_test
       FROM [[phase_.store(1 - phase, std::memory_order_seq_cst);]] TO [[phase_.store(phase, std::memory_order_seq_cst);]]
       SAYS "Old unwind tables are freed while handlers still read them.")
mutant(scaled_down_always FILE src/base/scale.h TEST base_test
       FROM [[ + running / 2) / running]] TO [[) / running]]
       SAYS "Scaled counts are rounded down: sums of multiplexed counts are too small.")
mutant(never_ran_is_a_number FILE src/base/scale.h TEST base_test
       FROM [[if (running == 0) return std::nullopt;]] TO [[if (running == 0) return 0;]]
       SAYS "An event that never ran is reported as 0.")
mutant(no_saturation FILE src/base/scale.h TEST base_test
       FROM [[return scaled > kMax ? kMax : static_cast<uint64_t>(scaled);]] TO [[return scaled > kMax ? 0 : static_cast<uint64_t>(scaled);]]
       SAYS "A scaled count beyond 64 bits becomes a small number.")
mutant(swap_costs_two FILE src/base/nearest.cc TEST base_test
       FROM [[before[j - 2] + 1]] TO [[before[j - 2] + 2]]
       SAYS "'Did you mean' misses names with two letters swapped.")
mutant(far_names_suggested FILE src/base/nearest.cc TEST base_test
       FROM [[if (distance <= limit) {]] TO [[if (distance <= 2 * limit) {]]
       SAYS "An error suggests names that have nothing to do with what was typed.")
mutant(number_with_a_tail FILE src/base/number.h TEST event_test
       FROM [[|| stop != end) return]] TO [[) return]]
       SAYS "Text after a number is ignored: 'cycles:u:12x' is taken as valid.")
