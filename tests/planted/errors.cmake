# The errors: planted(<name> FILE <path> FROM <text> TO <text> SEEN_BY <check>).
#
# FROM must be in the file exactly once, otherwise the campaign fails: an error that no longer applies proves nothing.
# The checks are the test programs of run.cmake. Most of these errors have been made in widely used libraries.

# The wrong register: counters 12 and 13 are swapped in libperf 6.12 and in PAPI.
planted(swapped_counters FILE include/perfkit/detail/user_page.h SEEN_BY arm_counters
        FROM [[    PERFKIT_COUNTERS(12, 13, 14, 15)]]
        TO [[    case 12: asm volatile("mrs %0, pmevcntr13_el0" : "=r"(value)); break;
    case 13: asm volatile("mrs %0, pmevcntr12_el0" : "=r"(value)); break;
    PERFKIT_COUNTER(14)
    PERFKIT_COUNTER(15)]])
planted(cycles_from_a_counter FILE include/perfkit/detail/user_page.h SEEN_BY arm_counters
        FROM [["mrs %0, pmccntr_el0"]] TO [["mrs %0, pmevcntr30_el0"]])
planted(swapped_codes FILE include/perfkit/event_type.h SEEN_BY event_table
        FROM [[kCycles{0, 0, 0, 0, "cycles"};
inline constexpr EventType kInstructions{0, 1, 0, 0, "instructions"};]]
        TO [[kCycles{0, 1, 0, 0, "cycles"};
inline constexpr EventType kInstructions{0, 0, 0, 0, "instructions"};]])
planted(fixed_counters_lose_their_bit FILE include/perfkit/detail/user_page.h SEEN_BY user_page
        FROM [[access.Register(index - 1)]] TO [[access.Register((index - 1) & 0xff)]])
planted(rdpmc_of_few_bits FILE include/perfkit/detail/user_page.h SEEN_BY rdpmc
        FROM [[__builtin_ia32_rdpmc(static_cast<int>(n))]] TO [[__builtin_ia32_rdpmc(static_cast<int>(n & 0xffff))]])

# A wrong value.
planted(no_sign_extension FILE include/perfkit/detail/user_page.h SEEN_BY user_page
        FROM [[SignExtend(access.Register(index - 1), access.Load(page.pmc_width))]]
        TO [[static_cast<int64_t>(access.Register(index - 1))]])
planted(zero_extension FILE include/perfkit/detail/user_page.h SEEN_BY user_page
        FROM [[return static_cast<int64_t>(value << unused) >> unused;]]
        TO [[return static_cast<int64_t>(value << unused >> unused);]])
planted(every_register_has_48_bits FILE include/perfkit/detail/user_page.h SEEN_BY user_page
        FROM [[access.Load(page.pmc_width))]] TO [[48)]])
planted(index_0_is_read FILE include/perfkit/detail/user_page.h SEEN_BY user_page
        FROM [[if (index == 0 || ]] TO [[if (]])
planted(right_is_not_asked FILE include/perfkit/detail/user_page.h SEEN_BY user_page
        FROM [[ || (capabilities & UserPage::kCanReadCounter) == 0) return]] TO [[) return]])

# A value that is not from one consistent read.
planted(no_retry FILE include/perfkit/detail/user_page.h SEEN_BY torn_page
        FROM [[if (access.Lock(page) == lock) return true;]] TO [[return true;]])
planted(half_an_update_is_taken FILE include/perfkit/detail/user_page.h SEEN_BY torn_page
        FROM [[if ((lock & 1) != 0) continue;]] TO [[]])
planted(offset_after_the_check FILE include/perfkit/detail/user_page.h SEEN_BY torn_page
        FROM [[if (access.Lock(page) == lock) return true;]]
        TO [[if (access.Lock(page) == lock) {
      out.value = static_cast<uint64_t>(access.Load(page.offset)) + static_cast<uint64_t>(counted);
      return true;
    }]])

# Arithmetic in 64 bits.
planted(scaling_in_64_bits FILE src/base/scale.h SEEN_BY scale
        FROM [[__extension__ using Wide = unsigned __int128;]] TO [[using Wide = uint64_t;]])
planted(time_in_64_bits FILE include/perfkit/detail/user_page.h SEEN_BY user_page
        FROM [[__extension__ using Wide = unsigned __int128;]] TO [[using Wide = uint64_t;]])
planted(short_ticks_are_taken_for_long FILE include/perfkit/detail/user_page.h SEEN_BY user_page
        FROM [[if ((capabilities & UserPage::kShortTicks) != 0) {]] TO [[if (false) {]])
