# The tests of the operations: one program of all of them, test_ops, and the ways in which it is run. README.md in this
# folder says which and why.
set(DMATH_TEST_PRODUCT PAIRWISE CACHE STRING "op tests: PAIRWISE, or FULL: each program in each way, alone")
set_property(CACHE DMATH_TEST_PRODUCT PROPERTY STRINGS PAIRWISE FULL)
set(DMATH_OPS_TOGETHER 40) # programs of one test at most

# In every way, and in some more.
set(DMATH_OPS_CORE test_copy test_gemm test_gemm_forced test_program test_sum)
# They open the session of a launch themselves, so it has no room for others.
set(DMATH_OPS_ALONE test_apply)

# ---- the program ----
file(GLOB op_sources CONFIGURE_DEPENDS ops/test_*.c)
list(SORT op_sources)
set(op_programs)
set(table ${CMAKE_CURRENT_BINARY_DIR}/op_programs/op_programs.h)
set(prototypes "/* Written by tests/ops.cmake. */\n")
set(rows "#define OP_PROGRAMS(ROW)")
foreach(source IN LISTS op_sources)
  get_filename_component(name ${source} NAME_WE)
  list(APPEND op_programs ${name})
  set(alone false)
  if(name IN_LIST DMATH_OPS_ALONE)
    set(alone true)
  endif()
  string(APPEND prototypes "int ${name}_main(void);\n")
  string(APPEND rows " \\\n    ROW(${name}, ${alone})")
  # Its main() under a name of its own, with a prototype.
  set_source_files_properties(${source} PROPERTIES COMPILE_DEFINITIONS main=${name}_main
                                                   COMPILE_OPTIONS "-include;${table}")
  file(CREATE_LINK test_ops ${CMAKE_CURRENT_BINARY_DIR}/${name} SYMBOLIC)
endforeach()
file(CONFIGURE OUTPUT ${table} CONTENT "${prototypes}${rows}\n" @ONLY)
add_executable(test_ops driver/ops_main.c driver/touches.c driver/on_paper.c ${op_sources})
target_include_directories(test_ops PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_CURRENT_BINARY_DIR}/op_programs)
target_link_libraries(test_ops PRIVATE dmath_objects dmath_sim dmath_test_support PkgConfig::CMOCKA)
target_link_options(test_ops PRIVATE -Wl,--wrap=dmi_backend_cpu,--wrap=dmi_plan_make) # touches.c, on_paper.c

# ---- each in process ----
foreach(name IN LISTS op_programs)
  dmath_test(${name} test_ops ${name})
  dmath_test_folder(${name})
  if(DMATH_TEST_PRODUCT STREQUAL PAIRWISE) # seeds are fixed here: scripts/soak.sh draws others
    set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT DMATH_TEST_CASES=0.4)
  endif()
endforeach()

# ---- beside the table of kernels, and on paper (driver/touches.h): all kernels and ops, few cases ----
set(DMATH_OPS_PAPER test_apply test_load test_program test_save) # in full, because they take long to begin
set_property(TEST ${DMATH_OPS_PAPER} APPEND PROPERTY ENVIRONMENT DMATH_TEST_PAPER=1)
set(touching ${op_programs})
list(FILTER touching EXCLUDE REGEX
     "all_reduce|apply|array|complex|conv_net|errors|explain|factors|forced|handles|join|linalg|load|map_|masks|permute")
list(FILTER touching EXCLUDE REGEX "program|replicas|save|session|shapes|slice|symmetric|tf32|trim")
if(NOT DMATH_SANITIZE) # whose complaints would be about bytes that hold a pattern
  dmath_test(ops_touches test_ops ${touching})
  set_property(TEST ops_touches APPEND PROPERTY ENVIRONMENT DMATH_DEVICE=cpu DMATH_TEST_TOUCHES=all DMATH_TEST_PAPER=all DMATH_TEST_CASES=0.03
                                                DMATH_TEST_LISTS=0.03)
  dmath_test_folder(ops_touches)
endif()

# ---- the ways ----
# ops_entry(name ranks programs setting...): one test of these programs; 0 ranks: in process.
function(ops_entry name ranks programs)
  list(LENGTH programs count)
  if(count GREATER 1)
    math(EXPR DMATH_TEST_TIMEOUT "2 * ${DMATH_TEST_TIMEOUT}")
  endif()
  if(ranks)
    dmath_mpi_test(${name} ${ranks} $<TARGET_FILE:test_ops> ${programs})
  else()
    dmath_test(${name} test_ops ${programs})
  endif()
  if(TEST ${name})
    set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT ${ARGN})
    set_property(TEST ${name} APPEND PROPERTY LABELS ops)
    set_property(TEST ${name} PROPERTY COST ${count}) # the longest begin first
    dmath_test_folder(${name})
  endif()
endfunction()

# ops_way(way ranks programs setting...): these programs in that way, in as few tests as may be; or one by one.
function(ops_way way ranks programs)
  if(DMATH_TEST_PRODUCT STREQUAL FULL)
    foreach(program IN LISTS programs)
      ops_entry(${program}_${way} ${ranks} ${program} ${ARGN} DMATH_TEST_LISTS=1)
    endforeach()
    return()
  endif()
  list(LENGTH programs count)
  math(EXPR tests "(${count} + ${DMATH_OPS_TOGETHER} - 1) / ${DMATH_OPS_TOGETHER}")
  foreach(i RANGE 1 ${tests})
    set(chosen)
    foreach(j RANGE ${i} ${count} ${tests}) # dealt out in turn
      math(EXPR at "${j} - 1")
      list(GET programs ${at} program)
      list(APPEND chosen ${program})
    endforeach()
    set(name ops_${way})
    if(tests GREATER 1)
      string(APPEND name _${i})
    endif()
    ops_entry(${name} ${ranks} "${chosen}" ${ARGN})
  endforeach()
endfunction()

# Half of the others each, by their place in the list, with the core: pairs of ways in process share them.
set(others ${op_programs})
list(REMOVE_ITEM others ${DMATH_OPS_CORE})
set(half_0 ${DMATH_OPS_CORE})
set(half_1 ${DMATH_OPS_CORE})
set(at 0)
foreach(program IN LISTS others)
  math(EXPR half "${at} % 2")
  list(APPEND half_${half} ${program})
  if(DMATH_TEST_PRODUCT STREQUAL FULL)
    math(EXPR half "1 - ${half}")
    list(APPEND half_${half} ${program})
  endif()
  math(EXPR at "${at} + 1")
endforeach()
set(launched ${op_programs})
list(REMOVE_ITEM launched ${DMATH_OPS_ALONE})

# Debug builds run commands one after another where memory changes hands (pool_debug); releases do not. Here memory
# changes hands as in a release, sums go in slices, slabs are small, and kept operands have little room.
set(handover DMATH_POOL_DEBUG=0 DMATH_SLAB=1M DMATH_REPLICA_LIMIT=1M)
set(slices DMATH_REDUCE_ALGORITHM=scatter DMATH_REDUCE_CHUNK=256)
set(lists) # a part of the long lists, another one in each way
if(DMATH_TEST_PRODUCT STREQUAL PAIRWISE)
  set(lists DMATH_TEST_LISTS=0.2)
endif()
ops_way(handover_0 0 "${half_0}" ${handover} ${lists} DMATH_TEST_CASES=0.06 DMATH_TEST_WINDOW=4)
ops_way(handover_1 0 "${half_1}" ${handover} ${lists} DMATH_TEST_CASES=0.06 DMATH_TEST_WINDOW=5)

# With ranks of an MPI job as workers: bytes going as they like to, through MPI, and both within one command. Each
# launch takes other random cases, and another part of the long lists.
set(auto_setting DMATH_TRANSPORT=auto)
set(mpi_setting DMATH_TRANSPORT=mpi)
set(mixed_setting DMATH_PRETEND_HOSTS=2)
set(window 0)
foreach(transport auto mpi mixed)
  set(setting ${${transport}_setting} DMATH_TEST_LAUNCHED=1 DMATH_REPLICA_LIMIT=1M DMATH_TEST_CASES=0.12)
  if(DMATH_TEST_PRODUCT STREQUAL PAIRWISE)
    list(APPEND setting DMATH_TEST_LISTS=0.34) # the three take all
  endif()
  ops_way(ranks_${transport} 4 "${launched}" ${setting} DMATH_TEST_WINDOW=${window})
  ops_way(ranks_${transport}_handover 4 "${launched}" ${setting} ${handover} ${slices} DMATH_TEST_WINDOW=${window})
  foreach(program IN LISTS DMATH_OPS_ALONE)
    ops_entry(${program}_ranks_${transport} 4 ${program} ${setting})
  endforeach()
  math(EXPR window "${window} + 1")
endforeach()

# Forced forms of the product with ranks: a launch each, for the option is of the session.
set(forms cyclic:auto two_block:mpi ring:mixed stationary:auto contract:mpi contract:mixed)
foreach(form IN LISTS forms)
  string(REPLACE ":" ";" form ${form})
  list(GET form 0 algorithm)
  list(GET form 1 transport)
  ops_entry(ops_gemm_${algorithm}_${transport} 4 test_gemm_forced ${${transport}_setting} DMATH_TEST_LAUNCHED=1
            DMATH_GEMM_ALGORITHM=${algorithm} DMATH_TEST_CASES=0.2 DMATH_TEST_LISTS=0.3)
endforeach()

if(DMATH_HAVE_CUDA)
  return() # what follows is emulated
endif()

# And with GPUs that are emulated: two for three workers, as threads that push to each other or through the host, and as
# ranks: pushing to each other, by messages of device memory, and both within one command.
set(gpus DMATH_DEVICE=emulated DMATH_EMULATED_GPUS=2 DMATH_EMULATED_DELAY_US=50 DMATH_SHARE_GPU=1 DMATH_TEST_CASES=0.03
    DMATH_FILE_CHUNK=8K DMATH_FILE_THREADS=3 DMATH_GEMM_TRANSPOSE=20 DMATH_PACE_BYTES=1)
set(few DMATH_TEST_LISTS=0.06)
set(threads ${gpus} ${few} DMATH_TEST_WORKERS=3)
set(far DMATH_PRETEND_HOSTS=2)
ops_way(emulated_near 0 "${half_0}" ${threads} DMATH_TEST_WINDOW=0)
ops_way(emulated_far 0 "${half_1}" ${threads} ${far} ${handover} DMATH_TEST_WINDOW=1)
set(cuda_mpi_setting DMATH_TRANSPORT=cuda_mpi)
set(window 2)
foreach(way ranks cuda_mpi mixed)
  set(setting ${gpus} ${few} ${${way}_setting} DMATH_TEST_LAUNCHED=1 DMATH_REPLICA_LIMIT=1M)
  if(way STREQUAL ranks)
    list(APPEND setting DMATH_TRANSPORT=auto)
  endif()
  ops_way(emulated_${way} 4 "${launched}" ${setting} DMATH_SLAB=1M DMATH_TEST_WINDOW=${window})
  math(EXPR window "${window} + 1")
  ops_way(emulated_${way}_handover 4 "${launched}" ${setting} ${handover} ${slices} DMATH_TEST_WINDOW=${window})
  math(EXPR window "${window} + 1")
  foreach(program IN LISTS DMATH_OPS_ALONE)
    ops_entry(${program}_emulated_${way} 4 ${program} ${setting})
  endforeach()
endforeach()
foreach(algorithm panels fused)
  ops_entry(ops_gemm_${algorithm}_emulated 4 test_gemm_forced ${gpus} ${few} DMATH_EMULATED_GPUS=3 DMATH_TEST_LAUNCHED=1
            DMATH_GEMM_ALGORITHM=${algorithm} DMATH_TEST_CASES=0.2)
endforeach()

# The core in some more ways: blocks that go by a kernel; red zones and poison; blocks that are allocations of their own;
# steps as graphs.
set(ranks ${gpus} ${few} DMATH_TEST_LAUNCHED=1)
set(push DMATH_PUSH_KERNEL=64M)
set(debug DMATH_POOL_DEBUG=1 DMATH_PACE_BYTES=0 DMATH_EMULATED_DELAY_US=0)
set(capture DMATH_CAPTURE=1 DMATH_PUSH_KERNEL=1K)
set(core "${DMATH_OPS_CORE}")
ops_way(emulated_push 0 "${core}" ${threads} ${push} DMATH_TEST_WINDOW=8)
ops_way(emulated_push_ranks 4 "${core}" ${ranks} ${push} DMATH_TEST_WINDOW=9)
ops_way(emulated_debug 0 "${core}" ${threads} ${debug} DMATH_TEST_WINDOW=10)
ops_way(emulated_debug_ranks 4 "${core}" ${ranks} ${debug} DMATH_TEST_WINDOW=11)
ops_way(emulated_own 0 "${core}" ${threads} DMATH_POOL_OWN=1 DMATH_EMULATED_DELAY_US=0 DMATH_TEST_WINDOW=12)
ops_way(emulated_capture 0 "${core}" ${threads} ${capture} DMATH_TEST_WINDOW=13)
ops_way(emulated_capture_far 0 "${core}" ${threads} ${capture} ${far} DMATH_POOL_DEBUG=0 DMATH_TEST_WINDOW=14)

# Under sanitizers all programs with few cases: what scripts/test.sh runs of such a build.
if(DMATH_SANITIZE)
  set(brief DMATH_TEST_LISTS=0.06 DMATH_TEST_CASES=0.03)
  ops_entry(ops_brief_0 0 "${half_0}" ${brief} DMATH_TEST_WINDOW=6)
  ops_entry(ops_brief_1 0 "${half_1}" ${brief} DMATH_TEST_WINDOW=7 ${handover})
  ops_entry(ops_brief_emulated 0 "${core}" ${threads} ${brief} DMATH_POOL_OWN=1 DMATH_EMULATED_DELAY_US=0)
  set_property(TEST ops_brief_0 ops_brief_1 ops_brief_emulated APPEND PROPERTY LABELS brief)
endif()
