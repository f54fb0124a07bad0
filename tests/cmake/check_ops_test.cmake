# Runs dmath_check_ops on small trees, sound and faulty.  cmake -DROOT=<repository> -DWORK=<folder> -P this
cmake_minimum_required(VERSION 3.22)
include(${ROOT}/cmake/check_ops.cmake)

# expect(<case> <pattern> file...): a tree of these files (path or path=contents) gives a text that matches; an empty
# pattern: no text at all.
function(expect case pattern)
  set(tree ${WORK}/${case})
  file(REMOVE_RECURSE ${tree})
  file(MAKE_DIRECTORY ${tree})
  foreach(file IN LISTS ARGN)
    string(REGEX MATCH "^([^=]*)=?(.*)$" ignored "${file}")
    file(WRITE ${tree}/${CMAKE_MATCH_1} "${CMAKE_MATCH_2}\n")
  endforeach()
  dmath_check_ops(${tree} problems)
  if(pattern STREQUAL "" AND NOT problems STREQUAL "")
    message(SEND_ERROR "${case}: nothing was to be reported, got: ${problems}")
  elseif(NOT problems MATCHES "${pattern}")
    message(SEND_ERROR "${case}: expected '${pattern}', got: '${problems}'")
  endif()
endfunction()

set(row "/* DMI_OP(x) */\nDMI_OP(add, OPERAND(a, READ, ALL))")
expect(no_table "" src/ops/add.c)
expect(sound "" "src/ops/ops.def=${row}" src/ops/add.c src/ops/ops.c src/ops/common_shape.c tests/ops/test_add.c)
expect(no_source "row for add, but there is no src/ops/add.c" "src/ops/ops.def=${row}" tests/ops/test_add.c)
expect(no_test "row for add, but there is no tests/ops/test_add.c" "src/ops/ops.def=${row}" src/ops/add.c)
expect(stray_source "src/ops/sub.c has no row for sub" "src/ops/ops.def=${row}" src/ops/add.c src/ops/sub.c
       tests/ops/test_add.c)
expect(other_test "" "src/ops/ops.def=${row}" src/ops/add.c tests/ops/test_add.c tests/ops/test_views.c)
expect(several_sources "" "src/ops/ops.def=${row}" src/ops/add.c src/ops/add_rows.c tests/ops/test_add.c
       tests/ops/test_add_rows.c)
expect(two_rows "two rows for add" "src/ops/ops.def=${row}\n${row}" src/ops/add.c tests/ops/test_add.c)
