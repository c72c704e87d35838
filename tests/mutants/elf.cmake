# Mutants of src/elf: see run.cmake.
mutant(first_symbol_is_skipped FILE src/elf/symbols.cc TEST elf_test
       FROM [[for (uint64_t i = 1; i < entries->size()]] TO [[for (uint64_t i = 2; i < entries->size()]]
       SAYS "A file's first function has no name.")
mutant(version_in_the_name FILE src/elf/symbols.cc TEST elf_test
       FROM [[.value_or(std::string_view()), '@').first;]] TO [[.value_or(std::string_view()), '\0').first;]]
       SAYS "Functions are named 'puts@GLIBC_2.2.5'.")
mutant(old_versions_are_current FILE src/elf/symbols.cc TEST elf_test
       FROM [[(*version & kVersionHidden) != 0;]] TO [[(*version & kVersionHidden) == 1;]]
       SAYS "A probe is set on the old version of a function.")
mutant(notes_are_not_padded FILE src/elf/notes.cc TEST elf_test
       FROM [[at = Padded(description_at + header->n_descsz, alignment);]] TO [[at = description_at + header->n_descsz;]]
       SAYS "A build-id after a note of odd size is not found.")
mutant(any_note_is_a_build_id FILE src/elf/notes.cc TEST elf_test
       FROM [[note.type == NT_GNU_BUILD_ID && note.owner == "GNU"]] TO [[note.type == NT_GNU_BUILD_ID]]
       SAYS "Another owner's note is taken for the build-id: the file is refused as another build.")
