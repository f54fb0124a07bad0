# The examples as tests: in process with several numbers of workers and under mpirun, each checked with NumPy.
set(data ${PROJECT_SOURCE_DIR}/examples/data/digits.npy)
set(generated --rows 403 --cols 37 --rank 5 --save-data)

# example_check(run data outdir): NumPy agrees with what test `run` left in outdir.
function(example_check run data outdir)
  if(NOT TEST ${run})
    return()
  endif()
  set_tests_properties(${run} PROPERTIES FIXTURES_SETUP ${run})
  if(DMATH_PYTHON)
    add_test(NAME ${run}_check
             COMMAND ${DMATH_PYTHON} ${PROJECT_SOURCE_DIR}/examples/check_pca.py ${data} ${outdir})
    set_tests_properties(${run}_check PROPERTIES TIMEOUT 60 FIXTURES_REQUIRED ${run})
  endif()
endfunction()

foreach(workers 1 3 4)
  set(outdir ${CMAKE_CURRENT_BINARY_DIR}/pca_w${workers})
  dmath_test(pca_w${workers} pca ${data} -o ${outdir})
  dmath_test(pca_generated_w${workers} pca ${generated} -o ${outdir}_generated)
  foreach(name pca_w${workers} pca_generated_w${workers})
    set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT DMATH_WORKERS=${workers})
  endforeach()
  example_check(pca_w${workers} ${data} ${outdir})
  example_check(pca_generated_w${workers} ${outdir}_generated/data.npy ${outdir}_generated)
endforeach()

set(outdir ${CMAKE_CURRENT_BINARY_DIR}/pca_mpi)
dmath_mpi_test(pca_mpi5 5 $<TARGET_FILE:pca> ${data} -o ${outdir}5)
dmath_mpi_test(pca_generated_mpi4 4 $<TARGET_FILE:pca> ${generated} -o ${outdir}4_generated)
dmath_mpi_worker_test(pca_mpi5_worker 5 $<TARGET_FILE:pca> ${data} -o ${outdir}5_worker)
example_check(pca_mpi5 ${data} ${outdir}5)
example_check(pca_generated_mpi4 ${outdir}4_generated/data.npy ${outdir}4_generated)
example_check(pca_mpi5_worker ${data} ${outdir}5_worker)

dmath_test(product_w3 product)
set_property(TEST product_w3 APPEND PROPERTY ENVIRONMENT DMATH_WORKERS=3)
dmath_mpi_test(product_mpi4 4 $<TARGET_FILE:product>)

# Ends with 1 where the solution is wrong, or a worker sent the program anything.
foreach(workers 1 3 4)
  dmath_test(conjugate_w${workers} conjugate)
  set_property(TEST conjugate_w${workers} APPEND PROPERTY ENVIRONMENT DMATH_WORKERS=${workers})
endforeach()
dmath_mpi_test(conjugate_mpi4 4 $<TARGET_FILE:conjugate>)

# Ends with 1 where the net has learnt too little. ThreadSanitizer would take minutes.
set(counts 1 3)
if(DMATH_SANITIZE MATCHES "thread")
  set(counts "")
endif()
foreach(workers IN LISTS counts)
  dmath_test(lenet_by_calls_w${workers} lenet_by_calls ${data} ${PROJECT_SOURCE_DIR}/examples/data/digits_labels.npy)
  set_property(TEST lenet_by_calls_w${workers} APPEND PROPERTY ENVIRONMENT DMATH_WORKERS=${workers})
endforeach()

# Each of these saves what it started from and what it found, for check_examples.py.
if(DMATH_PYTHON)
  set(check ${DMATH_PYTHON} -B ${PROJECT_SOURCE_DIR}/examples/check_examples.py)
  foreach(name kmeans logistic two_layers heat power pipelines conjugate)
    dmath_test(example_${name} ${check} ${name} $<TARGET_FILE:${name}>)
    if(NOT DMATH_SANITIZE MATCHES "thread")
      add_test(NAME example_${name}_mpi4 COMMAND ${check} ${name} $<TARGET_FILE:${name}> --launcher
                                                 "${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} 4")
      set_tests_properties(example_${name}_mpi4 PROPERTIES TIMEOUT ${DMATH_TEST_TIMEOUT} PROCESSORS 2 LABELS mpi
                                                           ENVIRONMENT "${DMATH_MPI_ENVIRONMENT};MPIEXEC_TIMEOUT=100")
    endif()
  endforeach()
endif()
