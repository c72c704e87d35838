# Mutants of src/itt: see run.cmake.
mutant(end_leaves_inner_tasks_open FILE src/itt/collector.cc TEST itt_test CASES "itt: ends*"
       FROM [[  tasks->Pop(count);]] TO [[  tasks->Pop(1);]]
       SAYS "A task that was not ended takes the end of the task around it: all that follows is one level too deep.")
mutant(groups_ignored FILE src/itt/functions.cc TEST itt_test CASES "itt: only*"
       FROM [[(entry->group & groups) != 0 ? Find]] TO [[groups != 0 ? Find]]
       SAYS "A library that has asked for one group gets calls of all.")
mutant(early_domains_not_adopted FILE src/itt/names.cc TEST itt_test CASES "itt: a name*"
       FROM [[domains_.try_emplace(domain->name, domain);]] TO [[domains_.try_emplace(domain->name, nullptr);]]
       SAYS "A program that asks for its domain again gets another one, or none.")
mutant(main_thread_marks FILE src/itt/library/own_table.cc TEST itt_test CASES "itt: each*"
       FROM [[  impl_->DetachThisThread();]] TO [[  (void)impl_;]]
       SAYS "Nothing of the thread that loads the collector is in the table.")
mutant(end_gives_up_at_once FILE src/itt/collector.cc TEST itt_collector_test CASES "itt collector: the end*"
       FROM [[waited < kMaxWaitMs &&]] TO [[waited < 0 * kMaxWaitMs &&]]
       SAYS "Tasks that would have ended in a moment have no counts.")
mutant(early_copies_not_handed_over FILE src/itt/library/entry.cc TEST itt_collection_test CASES "itt collection: a copy*"
       FROM [[if (IsLoaded(global)) HandOver]] TO [[if (!IsLoaded(global)) HandOver]]
       SAYS "A library that called ITT before Start goes on counting into a table that is never written.")
mutant(started_programs_have_tables FILE src/itt/load.cc TEST itt_collection_test CASES "itt collection: programs*"
       FROM [[setenv(kForwardOnly, "1", 1);]] TO [[unsetenv(kForwardOnly);]]
       SAYS "Each annotated program that the program starts writes a table to its stderr.")
mutant(jump_is_a_handler FILE src/itt/open_tasks.h TEST itt_collector_test
       FROM [[return work_frame != 0 && reinterpret_cast]] TO [[return work_frame == 0 && reinterpret_cast]]
       SAYS "After a handler's siglongjmp, the thread counts no task.")
mutant(waits_for_jumped_threads FILE src/itt/wait_outside.cc TEST itt_collector_test
       FROM [[return has_ended_ || waited_ns_ >= give_up_after_ns;]] TO [[return has_ended_ || give_up_after_ns == 0;]]
       SAYS "After a handler's siglongjmp, the end of a collection never returns.")
