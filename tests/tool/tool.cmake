# The command-line tool: tests/tool/test_tool.c knows where it is; the other tests run it themselves.
if(TARGET dmath_tool)
  target_compile_definitions(test_tool PRIVATE DMATH_TOOL="$<TARGET_FILE:dmath_tool>")
  add_dependencies(test_tool dmath_tool)
  set(tool $<TARGET_FILE:dmath_tool>)

  # Every measurement, small, in process and under mpirun, with every transport.
  set(few --repeats 3 --warmup 1)
  set(bench_gemm gemm --sizes 48,17x33x5 --dtypes f64,f32,f16,bf16
                 --layouts rows/cols/rows,rows,cols/rows/grid,single:0/replicated/cyclic:1:4)
  set(bench_dispatch dispatch --count 20000 --idle 0.1)
  set(bench_transport transport --max 64K)
  set(bench_remap remap --sizes 1,33,200 --dtype f64)
  foreach(bench gemm dispatch transport remap)
    dmath_test(tool_bench_${bench} dmath_tool bench ${bench_${bench}} ${few} --workers 2,3)
    foreach(transport direct mpi)
      dmath_mpi_test(tool_bench_${bench}_${transport} 4 ${tool} bench ${bench_${bench}} ${few} --transport ${transport})
    endforeach()
  endforeach()

  # What needs no workers lets them go.
  dmath_mpi_test(tool_info_mpi 3 ${tool} info)
  dmath_mpi_worker_test(tool_explain_mpi 3 ${tool} explain gemm --m 64 --n 64 --k 64)
  dmath_mpi_worker_test(tool_help_mpi 3 ${tool} bench gemm --help)
  dmath_mpi_test(tool_refusal_mpi 3 ${tool} bench gemm --sizes none)
  if(TEST tool_refusal_mpi)
    set_tests_properties(tool_refusal_mpi PROPERTIES PASS_REGULAR_EXPRESSION "--sizes: `none' is not understood")
  endif()

  if(DMATH_PYTHON)
    foreach(kind threads mpi)
      set(folder ${CMAKE_CURRENT_BINARY_DIR}/run/tool_check_${kind})
      file(MAKE_DIRECTORY ${folder})
      set(check ${DMATH_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/tool/check_tool.py ${folder})
      if(kind STREQUAL "threads")
        dmath_test(tool_check_threads ${check} ${tool})
      elseif(NOT DMATH_SANITIZE MATCHES "thread")
        add_test(NAME tool_check_mpi COMMAND ${check} ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} 4 ${tool})
        set_tests_properties(tool_check_mpi PROPERTIES TIMEOUT 120 PROCESSORS 4 LABELS mpi
                                                       ENVIRONMENT "${DMATH_MPI_ENVIRONMENT};MPIEXEC_TIMEOUT=100")
      endif()
    endforeach()
  endif()
endif()
