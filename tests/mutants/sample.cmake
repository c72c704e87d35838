# Mutants of src/sample: see run.cmake.
mutant(cost_at_the_budget FILE src/sample/overhead_controller.cc TEST sample_test CASES "[overhead_controller]"
       FROM [[if (cost > budget_) return Down]] TO [[if (cost > 2 * budget_) return Down]]
       SAYS "A sampler costs twice its budget.")
mutant(loss_is_forgiven FILE src/sample/overhead_controller.cc TEST sample_test CASES "[overhead_controller]"
       FROM [[lossy_ = window.lost > 0 ? lossy_ + 1 : 0;]] TO [[lossy_ = window.lost > 0 ? lossy_ : 0;]]
       SAYS "A sampler goes on losing samples for ever.")
mutant(climbs_without_room FILE src/sample/overhead_controller.cc TEST sample_test CASES "[overhead_controller]"
       FROM [[window.lost == 0 && cost * kRoom < budget_;]] TO [[window.lost == 0 && cost < budget_;]]
       SAYS "The rate goes up and down all the time.")
mutant(refused_step_is_believed FILE src/sample/overhead_controller.cc TEST sample_test CASES "[overhead_controller]"
       FROM [[    now_.slower = before;
]]
       TO [[]]
       SAYS "The sampler reports a rate that the kernel refused.")
mutant(backoff_never_grows FILE src/sample/overhead_controller.cc TEST sample_test CASES "[overhead_controller]"
       FROM [[std::min(2 * backoff_, kMaxBackoff);]] TO [[std::min(1 * backoff_, kMaxBackoff);]]
       SAYS "A rate that is too high is tried again and again.")
