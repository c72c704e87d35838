# Mutants of src/sample: see run.cmake.
mutant(cost_at_the_budget FILE src/sample/ladder.cc TEST sample_test CASES "[ladder]"
       FROM [[if (cost > budget_) return Down]] TO [[if (cost > 2 * budget_) return Down]]
       SAYS "A sampler costs twice its budget.")
mutant(loss_is_forgiven FILE src/sample/ladder.cc TEST sample_test CASES "[ladder]"
       FROM [[lossy_ = window.lost > 0 ? lossy_ + 1 : 0;]] TO [[lossy_ = window.lost > 0 ? lossy_ : 0;]]
       SAYS "A sampler goes on losing samples for ever.")
mutant(climbs_without_room FILE src/sample/ladder.cc TEST sample_test CASES "[ladder]"
       FROM [[window.lost == 0 && cost * kRoom < budget_;]] TO [[window.lost == 0 && cost < budget_;]]
       SAYS "The rate goes up and down all the time.")
mutant(refused_step_is_believed FILE src/sample/ladder.cc TEST sample_test CASES "[ladder]"
       FROM [[    now_.slower = before;
]]
       TO [[]]
       SAYS "The sampler reports a rate that the kernel refused.")
mutant(patience_never_grows FILE src/sample/ladder.cc TEST sample_test CASES "[ladder]"
       FROM [[std::min(2 * patience_, kMostPatience);]] TO [[std::min(1 * patience_, kMostPatience);]]
       SAYS "A rate that is too high is tried again and again.")
