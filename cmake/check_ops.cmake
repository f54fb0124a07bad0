# dmath_check_ops(<source dir> <problems>)
#
# Every row DMI_OP(name, ...) of src/ops/ops.def has its code in src/ops/name.c and its tests in
# tests/ops/test_name.c, either with more in files called name_*.c and test_name_*.c. No source in src/ops is
# without a row, but for what several ops share: ops*.c and common*.c. <problems> receives a text, one line for each
# thing that is not so, or nothing. A tree without the table is in order.
function(dmath_check_ops root problems)
  set(text "")
  set(table ${root}/src/ops/ops.def)
  if(EXISTS ${table})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${table})
    set(names "")
    file(STRINGS ${table} rows REGEX "^[ \t]*DMI_OP\\(")
    foreach(row IN LISTS rows)
      string(REGEX REPLACE "^[ \t]*DMI_OP\\([ \t]*([A-Za-z0-9_]+).*" "\\1" name "${row}")
      if(name IN_LIST names)
        string(APPEND text "src/ops/ops.def has two rows for ${name}\n")
      endif()
      list(APPEND names ${name})
      foreach(file src/ops/${name}.c tests/ops/test_${name}.c)
        if(NOT EXISTS ${root}/${file})
          string(APPEND text "src/ops/ops.def has a row for ${name}, but there is no ${file}\n")
        endif()
      endforeach()
    endforeach()

    # The library's own glob notices new files.
    file(GLOB sources ${root}/src/ops/*.c)
    foreach(file IN LISTS sources)
      get_filename_component(name ${file} NAME_WE)
      list(JOIN names "|" any)
      if(NOT name MATCHES "^(common|ops|(${any})(_|$))")
        file(RELATIVE_PATH shown ${root} ${file})
        string(APPEND text "${shown} has no row for ${name} in src/ops/ops.def\n")
      endif()
    endforeach()
  endif()
  set(${problems} "${text}" PARENT_SCOPE)
endfunction()
