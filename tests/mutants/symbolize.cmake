# Mutants of src/symbolize: see run.cmake.
mutant(weak_name_wins FILE src/symbolize/symbol_table.cc TEST symbolize_test
       FROM [[return a.binding > b.binding;]] TO [[return a.binding < b.binding;]]
       SAYS "Functions have other names than in perf: local aliases instead of global ones.")
mutant(alias_is_cut FILE src/symbolize/symbol_table.cc TEST symbolize_test
       FROM [[std::max(entries_[kept - 1].end, entry.end);]] TO [[std::min(entries_[kept - 1].end, entry.end);]]
       SAYS "The end of a function has no name if an alias of it is shorter.")
mutant(label_is_a_function FILE src/symbolize/symbol_table.cc TEST symbolize_test
       FROM [[      if (entry.begin < covered_to) continue;
]]
       TO [[]]
       SAYS "A label inside a function takes the rest of it.")
mutant(open_end_beyond_the_section FILE src/symbolize/symbol_table.cc TEST symbolize_test
       FROM [[entry.end = bound == bounds_.end() ? next : std::min(next, *bound);]] TO [[entry.end = next;]]
       SAYS "Assembler code has the rest of its file as its own.")
mutant(names_overflow FILE src/symbolize/symbol_table.cc TEST symbolize_test
       FROM [[if (name.size() > max_name_bytes_ - names_.size()) return false;]] TO [[if (name.size() > max_name_bytes_) return false;]]
       SAYS "A hostile file fills the memory with names.")
mutant(data_is_code FILE src/symbolize/elf_functions.cc TEST symbolize_test
       FROM [[section && (section->flags & SHF_EXECINSTR) != 0;]] TO [[section && (section->flags & SHF_ALLOC) != 0;]]
       SAYS "Labels of data are names of code.")
mutant(marks_are_functions FILE src/symbolize/elf_functions.cc TEST symbolize_test
       FROM [[&& symbol.name.front() != '.' && symbol.name.front() != '$';]] TO [[&& symbol.name.front() != '.';]]
       SAYS "On arm64 functions are named '$x'.")
mutant(split_units_are_not_told FILE src/symbolize/dwarf/module_lines.cc TEST symbolize_dwarf_test
       FROM [[  if (split == 0) return absl::OkStatus();]] TO [[  if (split < 2) return absl::OkStatus();]]
       SAYS "Inlined calls are missing without a word, because a program was compiled with -gsplit-dwarf.")
mutant(stripped_file_is_its_debug_file FILE src/symbolize/debug_file.cc TEST symbolize_test CASES "a debug file may have the name*"
       FROM [[return a == b || std::filesystem]] TO [[return a == b && std::filesystem]]
       SAYS "Debug files in .debug/ with the name of their program are not read.")
mutant(old_name_of_jit_code_is_kept FILE src/symbolize/symbolizer_names.cc TEST symbolize_test CASES "an address that was used again*"
       FROM [[MayBeRenamed(location) ? proc::Processes::kNoEpoch : epoch]] TO [[epoch]]
       SAYS "Code that is made at run time has the name of earlier code at its address.")
mutant(last_listed_is_highest FILE src/symbolize/kernel_names.cc TEST symbolize_test CASES "a module ends after its highest*"
       FROM [[std::max(last, symbol->address)]] TO [[symbol->address]]
       SAYS "Functions of kernel modules have no names.")
