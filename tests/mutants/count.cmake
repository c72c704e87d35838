# Mutants of src/count, except for its frames: see run.cmake.
mutant(gap_is_not_told FILE src/count/switch_log.cc TEST count_test CASES "[switch_log]"
       FROM [[  gaps_ = std::min(gaps_ + 1, detail::kMaxGaps);
]]
       TO [[]]
       SAYS "Migrations that were overwritten are left out of a number that is called exact.")
mutant(unknown_cpu_is_a_migration FILE src/count/switch_log.cc TEST count_test CASES "[switch_log]"
       FROM [[if (!record.is_out() && cpu_ != ~0u && record.cpu != cpu_)]] TO [[if (!record.is_out() && record.cpu != cpu_)]]
       SURVIVES "not killed yet: takes a thread whose CPU is not known when counting starts (no rseq)"
       SAYS "The first switch of a thread counts as a migration.")
mutant(record_under_way_is_read FILE src/count/switch_log.cc TEST count_test CASES "[switch_log]"
       FROM [[if (head - position_ > data.size() - sizeof(SwitchRecord)) {]] TO [[if (head - position_ > data.size() + sizeof(SwitchRecord)) {]]
       SURVIVES "not killed yet: takes a ring that is full to the last record at the moment of a read"
       SAYS "An overwritten switch record is counted.")
mutant(switches_out_are_migrations FILE src/count/switch_log.cc TEST count_test CASES "[switch_log]"
       FROM [[    cpu_ = record.cpu;
  }
}]]
       TO [[  }
}]]
       SAYS "After one migration each switch counts as one.")
mutant(major_faults_dropped FILE src/count/usage.cc TEST count_test CASES "[refused_read]"
       FROM [[= minor + major;]] TO [[= minor;]]
       SAYS "Where perf is forbidden, page faults lack those that waited for the disk.")
mutant(clock_of_the_process FILE src/count/usage.cc TEST count_test CASES "[fault],[refused_read]"
       FROM [[clock_gettime(CLOCK_THREAD_CPUTIME_ID, &clock)]] TO [[clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &clock)]]
       SAYS "Where perf is forbidden, a thread's CPU time contains that of all threads.")
mutant(standing_clock_passes FILE src/count/self_test.cc TEST count_test CASES "[self_test]"
       FROM [[return gain > 0 && gain >= cpu_ns / 2;]] TO [[return gain > 0 || gain < cpu_ns;]]
       SAYS "A clock that stands still is used, and reports 0 ns.")
mutant(too_many_faults_pass FILE src/count/self_test.cc TEST count_test CASES "[self_test],[fault]"
       FROM [[(gain >= 1 && gain <= Gain(before, after, UsageField::kPageFaults));]] TO [[gain >= 1;]]
       SAYS "A ring that counts too much is used.")
mutant(fallback_is_never_set FILE src/count/scope.cc TEST count_test CASES "*scope*"
       FROM [[if ((fallback_ >> i & 1) != 0) validity.flags |= Validity::kFallback;]] TO [[if ((fallback_ >> i & 2) != 0) validity.flags |= Validity::kFallback;]]
       SAYS "A number of getrusage is reported as one of perf.")
mutant(missing_scope_is_a_number FILE src/count/scope.cc TEST count_test CASES "*scope*"
       FROM [[|| (missing_ >> i & 1) != 0) return]] TO [[) return]]
       SAYS "A scope whose event could not be read contributes 0 to a sum that is called whole.")
mutant(merged_totals_forget_missing FILE src/count/scope.cc TEST count_test CASES "*scope*"
       FROM [[  missing_ |= other.missing_;
]]
       TO [[]]
       SAYS "A sum of several threads is called whole although one of them lacks an event.")
mutant(no_scopes_is_zero FILE src/count/scope.cc TEST count_test CASES "*scope*"
       FROM [[if (scopes_ == 0) return]] TO [[if (scopes_ == 0 && cross_thread_ > 0) return]]
       SAYS "What was never counted is reported as 0.")
mutant(kernel_share_of_user_instructions FILE src/count/metric/evaluator.cc TEST count_test CASES "*etric*"
       FROM [[candidate.word == wanted.word && candidate.modifiers == wanted.modifiers]] TO [[candidate.word == wanted.word]]
       SAYS "User instructions are divided by all cycles.")
mutant(metric_of_the_better_coverage FILE src/count/metric/evaluator.cc TEST count_test CASES "*etric*"
       FROM [[std::min(result.coverage, part->coverage)]] TO [[part->coverage]]
       SAYS "A ratio seems to be better covered than it is.")
mutant(division_by_zero FILE src/count/metric/evaluator.cc TEST count_test CASES "*etric*"
       FROM [[if (b.value == 0) return std::nullopt;]] TO [[if (b.value == 0) return Exact(0);]]
       SAYS "A report says '0.00 insn/cycle' although there is no such number.")
mutant(metric_of_mixed_modes FILE src/count/metric/evaluator.cc TEST count_test CASES "*etric*"
       FROM [[if (all.empty() || user_only.empty()) return]] TO [[if (all.empty() || !all.empty()) return]]
       SAYS "Instructions of user space are divided by cycles of user space and the kernel.")
mutant(uncounted_part_is_zero FILE src/count/metric/evaluator.cc TEST count_test CASES "*etric*"
       FROM [[if (!part->validity.counted()) {]] TO [[if (part->validity.has(Validity::kOtherThread)) {]]
       SAYS "A metric takes an event that was not counted for 0.")
