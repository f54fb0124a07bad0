# Checkpoints: programs that die while they save, power cuts, ranks.
add_executable(ckpt_main checkpoint/ckpt_main.c)
target_link_libraries(ckpt_main PRIVATE dmath)
add_library(file_calls MODULE checkpoint/file_calls.c)
target_compile_definitions(file_calls PRIVATE _GNU_SOURCE)
target_compile_options(file_calls PRIVATE -U_FORTIFY_SOURCE)
set_target_properties(file_calls PROPERTIES C_VISIBILITY_PRESET default)
set(folder ${CMAKE_CURRENT_SOURCE_DIR}/checkpoint)
target_compile_definitions(test_damage PRIVATE DMATH_TEST_VERSION_1="${folder}/version1")
set(run ${CMAKE_CURRENT_BINARY_DIR}/run)
dmath_mpi_test(test_elsewhere_ranks 4 $<TARGET_FILE:test_elsewhere>)
if(TEST test_elsewhere_ranks)
  set_property(TEST test_elsewhere_ranks APPEND PROPERTY ENVIRONMENT DMATH_TEST_LAUNCHED=1)
  dmath_test_folder(test_elsewhere_ranks)
endif()
if(DMATH_PYTHON AND NOT DMATH_SANITIZE)
  dmath_test(checkpoint_kill_moments ${DMATH_PYTHON} -B ${folder}/kill.py moments $<TARGET_FILE:ckpt_main>
             ${run}/checkpoint_kill_moments 30)
  # every seventh; all of them by hand
  dmath_test(checkpoint_kill_calls ${DMATH_PYTHON} -B ${folder}/kill.py calls $<TARGET_FILE:ckpt_main>
             $<TARGET_FILE:file_calls> ${run}/checkpoint_kill_calls 7)
  if(TARGET resume)
    dmath_test(resume ${DMATH_PYTHON} -B ${folder}/resume.py $<TARGET_FILE:resume> ${run}/resume)
    add_test(NAME resume_mpi COMMAND ${DMATH_PYTHON} -B ${folder}/resume.py $<TARGET_FILE:resume> ${run}/resume_mpi
                                     ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} 3)
    set_tests_properties(resume_mpi PROPERTIES TIMEOUT 120 PROCESSORS 2 LABELS mpi
                                               ENVIRONMENT "${DMATH_MPI_ENVIRONMENT};MPIEXEC_TIMEOUT=100")
  endif()
  if(TARGET resume)
    add_test(NAME resume_slurm COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/support/slurm_node.sh ${run}/resume_slurm
                                       bash ${folder}/slurm.sh ${PROJECT_SOURCE_DIR}/scripts
                                       $<TARGET_FILE:resume> ${MPIEXEC_EXECUTABLE})
    set_tests_properties(resume_slurm PROPERTIES TIMEOUT 200 SKIP_RETURN_CODE 77 COST 20 LABELS mpi
                                                 ENVIRONMENT "${DMATH_MPI_ENVIRONMENT}")
  endif()
  if(TARGET dmath_tool)
    dmath_test(checkpoint_tool ${DMATH_PYTHON} -B ${folder}/check_tool.py $<TARGET_FILE:dmath_tool> $<TARGET_FILE:ckpt_main>
               ${folder}/version1 ${run}/checkpoint_tool)
  endif()
  dmath_test(checkpoint_power_cut ${DMATH_PYTHON} -B ${folder}/power_cut.py $<TARGET_FILE:ckpt_main>
             $<TARGET_FILE:file_calls> ${run}/checkpoint_power_cut 3)
  # an array that is saved alone
  dmath_test(array_kill_moments ${DMATH_PYTHON} -B ${folder}/kill.py moments $<TARGET_FILE:ckpt_main> ${run}/array_kill_moments 30)
  dmath_test(array_kill_calls ${DMATH_PYTHON} -B ${folder}/kill.py calls $<TARGET_FILE:ckpt_main> $<TARGET_FILE:file_calls>
             ${run}/array_kill_calls)
  dmath_test(array_power_cut ${DMATH_PYTHON} -B ${folder}/power_cut.py $<TARGET_FILE:ckpt_main> $<TARGET_FILE:file_calls>
             ${run}/array_power_cut)
  set_property(TEST array_kill_moments array_kill_calls array_power_cut APPEND PROPERTY ENVIRONMENT CKPT_ARRAY=1)
endif()
