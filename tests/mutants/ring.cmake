# Mutants of src/ring and of the inline readers of rings and samples: see run.cmake.
mutant(front_not_put_back FILE src/ring/time_merge.cc TEST ring_test
       FROM [[    if (front.second != kNothing) front.reader->Unread(front.Record(1));
]]
       TO [[]]
       SAYS "The second record that a drain holds back is lost.")
mutant(held_is_not_told FILE src/ring/time_merge.cc TEST ring_test
       FROM [[stats.held |= front.first != kNothing;]] TO [[stats.held |= false;]]
       SAYS "A drain that holds records back says that it has delivered all.")
mutant(older_head_is_believed FILE src/ring/ring_reader.cc TEST ring_test
       FROM [[if (written == 0 || tail_ - head_ <= data_.size()) return false;]] TO [[if (written == 0) return false;]]
       SAYS "A head that lags for a moment throws the whole ring away as malformed.")
mutant(overwritten_is_not_counted FILE src/ring/ring_reader.cc TEST ring_test
       FROM [[if (clipped_ && !again) stats.overwritten_bytes]] TO [[if (clipped_ && again) stats.overwritten_bytes]]
       SAYS "A flight recorder does not say how much it has overwritten.")
mutant(cut_record_is_damage FILE src/ring/ring_reader.cc TEST ring_test
       FROM [[const bool cut = clipped_ && record.size % 8 == 0 && record.size > left;]]
       TO [[const bool cut = clipped_ && record.size % 8 == 0 && record.size > left + 64;]]
       SAYS "The oldest record of a full flight recorder is reported as malformed.")
mutant(tail_is_published_relaxed FILE src/ring/ring_reader.cc TEST ring_test
       FROM [[__atomic_store_n(&writable_->data_tail, tail, __ATOMIC_RELEASE);]]
       TO [[__atomic_store_n(&writable_->data_tail, tail, __ATOMIC_RELAXED);]]
       SURVIVES "x86-64 stores in order: only a machine with weaker ordering can show it"
       SAYS "On arm64 the kernel overwrites records that are still read.")
mutant(tail_is_not_published FILE src/ring/ring_reader.cc TEST ring_test
       FROM [[    PublishTail(broken ? to_ : at);]] TO [[    tail_ = broken ? to_ : at;]]
       SAYS "A ring fills up and loses everything that follows.")
mutant(damage_is_read_again FILE src/ring/ring_reader.cc TEST ring_test
       FROM [[PublishTail(broken ? to_ : at);]] TO [[PublishTail(at);]]
       SAYS "A malformed record stays in the ring: nothing after it is ever delivered.")
mutant(wrapped_record_is_its_first_half FILE src/ring/ring_reader.cc TEST ring_test
       FROM [[  std::memcpy(scratch_.get() + first, data_.data(), size - first);
]]
       TO [[  std::memcpy(scratch_.get() + first, data_.data() + first, size - first);
]]
       SAYS "A record that wraps around the ring's end ends with bytes of another.")
mutant(put_back_is_counted_twice FILE src/ring/ring_reader.cc TEST ring_test
       FROM [[  batch_.records -= 1;
]]
       TO [[]]
       SAYS "Records that were held back are counted twice in the statistics.")
mutant(bytes_of_another_reader FILE src/ring/ring_reader.cc TEST ring_test
       FROM [[  malformed_bytes += more.malformed_bytes;]] TO [[  malformed_bytes += more.overwritten_bytes;]]
       SAYS "Damage in one of several rings is not in the sum.")
mutant(times_swapped_in_samples FILE src/ring/sample_parts.cc TEST ring_test
       FROM [[return words_[FirstTail(format_) - 1];]] TO [[return words_[kFirstTime];]]
       SAYS "A multiplexed count in a sample seems to have run all the time.")
mutant(count_of_a_group_not_checked FILE src/ring/sample_parts.cc TEST ring_test
       FROM [[count > (words.size() - before) / each) return]] TO [[count > (words.size() - before)) return]]
       SAYS "A damaged group read makes the parser read past the record's end.")
mutant(lost_before_id FILE src/ring/sample_parts.cc TEST ring_test
       FROM [[if ((format_ & kReadId) != 0) value.id = words_[at++];]] TO [[if ((format_ & kReadId) != 0) value.id = words_[at];]]
       SAYS "An event's ID is reported as its lost samples.")
mutant(signed_link_register FILE src/ring/sample_parts.cc TEST ring_test
       FROM [[constexpr uint64_t kAddress = (uint64_t{1} << 48) - 1;]] TO [[constexpr uint64_t kAddress = ~uint64_t{0};]]
       SAYS "On arm64 with pointer authentication the caller of a leaf function is no address.")
mutant(leaf_caller_twice FILE src/ring/sample_parts.cc TEST ring_test
       FROM [[ || (pcs.size() > 1 && pcs[1] == link)) return]] TO [[) return]]
       SAYS "The caller is in the stack twice.")
mutant(pid_and_parent_swapped FILE src/ring/record.cc TEST ring_test
       FROM [[fields.TakeAll(task.pid, task.parent_pid, task.tid, task.parent_tid, task.time_ns);]]
       TO [[fields.TakeAll(task.pid, task.tid, task.parent_pid, task.parent_tid, task.time_ns);]]
       SAYS "Forks name the wrong parent: the child's code has no names.")
mutant(build_id_with_its_padding FILE src/ring/record.cc TEST ring_test
       FROM [[map.build_id = room.first(std::min(size, kRoom));]] TO [[map.build_id = room.first(kRoom);]]
       SAYS "A short build-id does not match its file: no function of it has a name.")
mutant(build_id_beyond_its_room FILE src/ring/record.cc TEST ring_test
       FROM [[map.build_id = room.first(std::min(size, kRoom));]] TO [[map.build_id = room.first(size);]]
       SAYS "A damaged record makes the parser read past its end.")
mutant(unthrottle_is_throttle FILE src/ring/record.cc TEST ring_test
       FROM [[throttle.throttled = Is(record, RecordType::kThrottle);]] TO [[throttle.throttled = !Is(record, RecordType::kThrottle);]]
       SAYS "Throttling is reported where it ended.")
mutant(switch_in_preempted FILE src/ring/record.cc TEST ring_test
       FROM [[change.preempted = change.out && (record]] TO [[change.preempted = !change.out && (record]]
       SAYS "A preemption is taken for a wait.")
mutant(shared_bits_of_level FILE src/ring/data_source.cc TEST ring_test
       FROM [[Join(bits_of_level >> 3, kLevels)]] TO [[Join(bits_of_level >> 2, kLevels)]]
       SAYS "Each memory level is named as the next one.")
mutant(hit_is_miss FILE src/ring/data_source.cc TEST ring_test
       FROM [[if ((bits & 2) != 0) text += " hit";]] TO [[if ((bits & 4) != 0) text += " hit";]]
       SAYS "Cache misses are reported as hits.")
