# Plants one error into a source: shared by tests/planted and tests/mutants.

# plant_text(<result> <text> <from> <to>): sets <result> to `text` with `to` instead of `from`. Sets <result>_PROBLEM to
# the problem, or to "": `from` must occur exactly once, because an error that no longer applies proves nothing.
function(plant_text result text from to)
  string(FIND "${text}" "${from}" first)
  string(FIND "${text}" "${from}" last REVERSE)
  set(problem "")
  if(from STREQUAL "" OR first EQUAL -1)
    set(problem "does not contain the text to replace")
  elseif(NOT first EQUAL last)
    set(problem "contains the text to replace more than once")
  elseif(from STREQUAL to)
    set(problem "would not change")
  endif()
  string(REPLACE "${from}" "${to}" edited "${text}")
  set(${result} "${edited}" PARENT_SCOPE)
  set(${result}_PROBLEM "${problem}" PARENT_SCOPE)
endfunction()
