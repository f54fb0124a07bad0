# Tests of libdmath_nn, each a program that sees its insides.
file(GLOB sources CONFIGURE_DEPENDS nn/test_*.c)
get_target_property(libraries dmath_nn_objects COMPILE_DEFINITIONS) # NN_HAVE_...: those that this build has
list(FILTER libraries INCLUDE REGEX "^NN_HAVE_")
foreach(source IN LISTS sources)
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/nn ${CMAKE_CURRENT_SOURCE_DIR})
  target_compile_definitions(${name} PRIVATE _GNU_SOURCE NN_EXAMPLES="${PROJECT_SOURCE_DIR}/examples" ${libraries})
  target_link_libraries(${name} PRIVATE dmath_nn_objects dmath_objects PkgConfig::CMOCKA)
  dmath_test(${name} ${name})
  dmath_test_folder(${name})
endforeach()

# Every allocation of the program itself can be made to fail.
target_link_options(test_missing_memory PRIVATE LINKER:--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=strdup,--wrap=open_memstream)

# Short ones of layers, data, and a training with a snapshot, under sanitizers too.
set(brief test_layers test_data test_lenet)
set_property(TEST ${brief} APPEND PROPERTY LABELS brief)
add_dependencies(tests_brief ${brief})

# Nets and layers on emulated GPUs: kernels and graphs there; other numbers of workers are the same plans, which the CPUs have.
# (test_gradients takes a minute there; by hand.)
foreach(program test_net test_layers test_lean test_fused test_copies test_time)
  dmath_test(${program}_emulated ${program})
  set_property(TEST ${program}_emulated APPEND PROPERTY ENVIRONMENT DMATH_DEVICE=emulated DMATH_EMULATED_GPUS=2 DMATH_SHARE_GPU=1
                                                                 DMATH_TEST_WORKERS=2,5)
  dmath_test_folder(${program}_emulated)
endforeach()

# Mostly naps, of which more workers mean longer ones.
set_property(TEST test_time APPEND PROPERTY ENVIRONMENT DMATH_TEST_WORKERS=1,3)
set_property(TEST test_time_emulated APPEND PROPERTY ENVIRONMENT DMATH_TEST_WORKERS=2)

# Splits of layers, tests beside training, updates that are dealt out, and gradients in bf16, with ranks, and on emulated GPUs.
foreach(program test_split test_beside test_dealt test_wire)
  foreach(ranks 3 6)
    dmath_mpi_test(${program}_mpi_${ranks} ${ranks} $<TARGET_FILE:${program}>)
    dmath_test_folder(${program}_mpi_${ranks})
  endforeach()
  dmath_test(${program}_emulated ${program})
  set_property(TEST ${program}_emulated APPEND PROPERTY ENVIRONMENT DMATH_DEVICE=emulated DMATH_EMULATED_GPUS=2 DMATH_SHARE_GPU=1
                                                                 DMATH_TEST_WORKERS=2,5)
  dmath_test_folder(${program}_emulated)
endforeach()

# Workers that read their own records, as ranks too.
foreach(ranks 2 3)
  dmath_mpi_test(test_readers_mpi_${ranks} ${ranks} $<TARGET_FILE:test_readers>)
  dmath_test_folder(test_readers_mpi_${ranks})
endforeach()
dmath_test(test_readers_emulated test_readers)
set_property(TEST test_readers_emulated APPEND PROPERTY ENVIRONMENT DMATH_DEVICE=emulated DMATH_EMULATED_GPUS=2 DMATH_SHARE_GPU=1)
dmath_test_folder(test_readers_emulated)
if(TARGET dmath_tool AND DMATH_PYTHON AND LMDB_FOUND AND PNG_FOUND AND NOT DMATH_SANITIZE)
  add_test(NAME nn_readers COMMAND ${DMATH_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/nn/readers.py $<TARGET_FILE:dmath_tool> $<TARGET_FILE:dmath-worker>
                                   $<TARGET_FILE:dmath_nn> ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG})
  set_tests_properties(nn_readers PROPERTIES TIMEOUT 600 PROCESSORS 2 LABELS mpi ENVIRONMENT "${DMATH_MPI_ENVIRONMENT};MPIEXEC_TIMEOUT=100")
  dmath_test_folder(nn_readers)
endif()

# LeNet's published files, trained by the tool: bits on other numbers of workers, losses against NumPy.
if(TARGET dmath_tool AND DMATH_PYTHON AND LMDB_FOUND AND ZLIB_FOUND)
  set(bits 200)
  set(oracle 20)
  if(DMATH_SANITIZE)
    set(bits 20)
    set(oracle 5)
  endif()
  set(script 2)
  foreach(what bits oracle script)
    add_test(NAME nn_lenet_${what} COMMAND ${DMATH_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/nn/lenet.py ${what} $<TARGET_FILE:dmath_tool>
                                           ${PROJECT_SOURCE_DIR}/examples --iterations ${${what}})
    set_tests_properties(nn_lenet_${what} PROPERTIES TIMEOUT 600 PROCESSORS 2 ENVIRONMENT "${DMATH_TEST_ENVIRONMENT}")
    dmath_test_folder(nn_lenet_${what})
  endforeach()
endif()

# Data layers and the tools for data against files made by the test.
if(TARGET dmath_tool AND DMATH_PYTHON AND LMDB_FOUND)
  foreach(what data report workers signals)
    add_test(NAME nn_${what} COMMAND ${DMATH_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/nn/${what}.py $<TARGET_FILE:dmath_tool>)
    set_tests_properties(nn_${what} PROPERTIES TIMEOUT 600 ENVIRONMENT "${DMATH_TEST_ENVIRONMENT}")
    dmath_test_folder(nn_${what})
  endforeach()
endif()

# The measurement of steps: it makes its nets and records, and prints a line for each.
if(TARGET dmath_tool AND DMATH_PYTHON AND LMDB_FOUND AND NOT DMATH_SANITIZE)
  add_test(NAME nn_steps COMMAND ${DMATH_PYTHON} ${PROJECT_SOURCE_DIR}/bench/networks/steps.py $<TARGET_FILE:dmath_tool> $<TARGET_FILE:dmath_tool>
                                 --nets lenet8 --workers 1,2 --seconds 0.02 --rounds 1 --type f32 --fed 16)
  set_tests_properties(nn_steps PROPERTIES TIMEOUT 120 ENVIRONMENT "${DMATH_TEST_ENVIRONMENT}"
                                           PASS_REGULAR_EXPRESSION "lenet8, 2 workers, f32, fed: .* images/s .*time beside the first: [0-9]")
  dmath_test_folder(nn_steps)
endif()

# Damaged files of all kinds, and a full disk.
if(TARGET dmath_tool AND DMATH_PYTHON AND LMDB_FOUND AND JPEG_FOUND AND PNG_FOUND)
  set(count 300)
  if(DMATH_SANITIZE)
    set(count 120)
  endif()
  add_test(NAME nn_mutate COMMAND ${DMATH_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/nn/mutate.py $<TARGET_FILE:dmath_tool> --count ${count})
  set_tests_properties(nn_mutate PROPERTIES TIMEOUT 600 ENVIRONMENT "${DMATH_TEST_ENVIRONMENT}")
  dmath_test_folder(nn_mutate)
endif()

# Files of nets in other forms.
if(TARGET dmath_tool AND DMATH_PYTHON)
  add_test(NAME nn_files COMMAND ${DMATH_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/nn/files.py $<TARGET_FILE:dmath_tool>)
  set_tests_properties(nn_files PROPERTIES TIMEOUT 600 ENVIRONMENT "${DMATH_TEST_ENVIRONMENT}")
  dmath_test_folder(nn_files)
  add_test(NAME nn_messages COMMAND ${DMATH_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/nn/messages.py $<TARGET_FILE:dmath_tool>)
  set_tests_properties(nn_messages PROPERTIES TIMEOUT 600 ENVIRONMENT "${DMATH_TEST_ENVIRONMENT}")
  dmath_test_folder(nn_messages)
endif()

# Decoded images that stay for later rounds.
if(TARGET dmath_tool AND DMATH_PYTHON AND PNG_FOUND)
  add_test(NAME nn_store COMMAND ${DMATH_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/nn/store.py $<TARGET_FILE:dmath_tool>)
  set_tests_properties(nn_store PROPERTIES TIMEOUT 600 ENVIRONMENT "${DMATH_TEST_ENVIRONMENT}")
  dmath_test_folder(nn_store)
endif()

# Solvers against NumPy.
if(TARGET dmath_tool AND DMATH_PYTHON)
  add_test(NAME nn_solvers COMMAND ${DMATH_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/nn/solvers.py $<TARGET_FILE:dmath_tool>)
  set_tests_properties(nn_solvers PROPERTIES TIMEOUT 600 ENVIRONMENT "${DMATH_TEST_ENVIRONMENT}")
  dmath_test_folder(nn_solvers)
endif()

# Both formats against Google's library, where Python has it.
if(TARGET dmath_tool AND DMATH_PYTHON)
  execute_process(COMMAND ${DMATH_PYTHON} -c "import google.protobuf" RESULT_VARIABLE result OUTPUT_QUIET ERROR_QUIET)
  if(result EQUAL 0)
    file(GLOB files ${PROJECT_SOURCE_DIR}/examples/lenet/*.prototxt)
    add_test(NAME nn_formats COMMAND ${DMATH_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/nn/check_formats.py $<TARGET_FILE:dmath_tool> ${files})
    set_tests_properties(nn_formats PROPERTIES TIMEOUT 60)
  endif()
endif()
