# Operations of a user's in a shared object, in the three forms of launch, and ranks that lack them.
foreach(name load_ops load_twice load_many)
  add_library(${name} MODULE load/ops.c)
  set_target_properties(${name} PROPERTIES PREFIX "" C_VISIBILITY_PRESET default)
  target_link_libraries(${name} PRIVATE dmath)
endforeach()
target_compile_definitions(load_twice PRIVATE TWICE)
target_compile_definitions(load_many PRIVATE MANY)
add_executable(load_main load/main.c)
target_link_libraries(load_main PRIVATE dmath)
set(load DMATH_LOAD=$<TARGET_FILE:load_ops>)

dmath_test(load_threads load_main)
dmath_test(load_missing load_main - ERR_CONFIG no-such-object)
dmath_test(load_twice load_main - ERR_ARG "load_nothing is taken")
dmath_test(load_option load_main $<TARGET_FILE:load_ops>)
set_property(TEST load_threads load_twice load_option APPEND PROPERTY ENVIRONMENT DMATH_WORKERS=3)
set_property(TEST load_threads APPEND PROPERTY ENVIRONMENT ${load})
set_property(TEST load_missing APPEND PROPERTY ENVIRONMENT DMATH_LOAD=no-such-object.so)
set_property(TEST load_twice APPEND PROPERTY ENVIRONMENT DMATH_LOAD=$<TARGET_FILE:load_twice>)

dmath_mpi_test(load_ranks 3 $<TARGET_FILE:load_main>)
if(TEST load_ranks)
  set_property(TEST load_ranks APPEND PROPERTY ENVIRONMENT ${load})
  dmath_mpi_add(load_worker 3 ${MPIEXEC_NUMPROC_FLAG} 1 $<TARGET_FILE:load_main> $<TARGET_FILE:load_ops>
                : ${MPIEXEC_NUMPROC_FLAG} 2 $<TARGET_FILE:dmath-worker> --load $<TARGET_FILE:load_ops>)
  dmath_mpi_add(load_differ 3 ${MPIEXEC_NUMPROC_FLAG} 1 $<TARGET_FILE:load_main> - ERR_VERSION
                "only rank 2 has load_count_up, load_nothing" : ${MPIEXEC_NUMPROC_FLAG} 1 $<TARGET_FILE:dmath-worker>
                : ${MPIEXEC_NUMPROC_FLAG} 1 $<TARGET_FILE:dmath-worker> --load $<TARGET_FILE:load_ops>)
  dmath_mpi_add(load_differ_many 3 ${MPIEXEC_NUMPROC_FLAG} 1 $<TARGET_FILE:load_main> - ERR_VERSION
                "only rank 2 has load_a, load_b, load_c and 2 more" : ${MPIEXEC_NUMPROC_FLAG} 1 $<TARGET_FILE:dmath-worker>
                : ${MPIEXEC_NUMPROC_FLAG} 1 $<TARGET_FILE:dmath-worker> --load $<TARGET_FILE:load_many>)
  set(one $<TARGET_FILE:load_ops>)
  set(other $<TARGET_FILE:load_many>)
  dmath_mpi_add(load_order 2 ${MPIEXEC_NUMPROC_FLAG} 1 -x DMATH_LOAD=${one}:${other} $<TARGET_FILE:load_main> - ERR_VERSION
                "in another order: number 1 is load_a there and load_count_up on rank 0" : ${MPIEXEC_NUMPROC_FLAG} 1
                -x DMATH_LOAD=${other}:${one} $<TARGET_FILE:dmath-worker>)
endif()
