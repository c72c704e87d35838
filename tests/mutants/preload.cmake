# Mutants of src/preload: see run.cmake.
mutant(closed_descriptors_are_used FILE src/preload/preload.cc TEST preload_test CASES "*closes all*"
       FROM [[if (!descriptors_.passes()) {]] TO [[if (settings_.path.empty()) {]]
       SAYS "A program that closes all descriptors loses the text of its files at exit.")
mutant(closed_descriptors_are_destroyed FILE src/preload/preload.cc TEST preload_test CASES "*closes all*"
       FROM [[return !deserted_ && descriptors_.passes();]] TO [[return !deserted_;]]
       SAYS "The destructor of the session closes files of the program before their text is written.")
mutant(forked_child_loses_files FILE src/sys/descriptor_check.cc TEST preload_test CASES "*closes all*"
       FROM [[  ExchangeKernel(&g_without_close);
]]
       TO [[]]
       SAYS "A daemon's forked workers have lost files of the daemon.")
mutant(path_is_relative FILE src/preload/preload.cc TEST preload_test CASES "*changes its folder*"
       FROM [[  base::MakeAbsolute(settings->path);
]]
       TO [[]]
       SAYS "A program that changes its folder leaves an old profile where the result is expected.")
mutant(failures_are_silent FILE src/preload/preload.cc TEST preload_test CASES "*does not call exit*"
       FROM [[if (!status.ok() && !complained) Complain(status);]] TO [[if (status.ok() && complained) Complain(status);]]
       SAYS "A program that ends by _exit leaves no profile, and no reason.")
