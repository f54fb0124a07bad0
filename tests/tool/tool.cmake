# The command-line tool: tests/tool/test_tool.c knows where it is; the other tests run it themselves.
if(TARGET dmath_tool)
  target_compile_definitions(test_tool PRIVATE DMATH_TOOL="$<TARGET_FILE:dmath_tool>")
  add_dependencies(test_tool dmath_tool)
  set(tool $<TARGET_FILE:dmath_tool>)

  # Every measurement, small, in process and under mpirun, with every transport.
  set(few --repeats 3 --warmup 1)
  set(bench_gemm gemm --sizes 48,17x33x5 --dtypes f64,f32,f16,bf16,tf32
                 --layouts rows/cols/rows,rows,cols/rows/grid,single:0/replicated/cyclic:1:4)
  set(bench_dispatch dispatch --count 20000 --idle 0.1)
  set(bench_transport transport --max 64K)
  set(bench_remap remap --sizes 1,33,200 --dtype f64)
  set(bench_groups groups --size 30 --count 4)
  set(bench_file file --size 900K --dtype f64 --layout cyclic:1:5)
  foreach(bench gemm dispatch transport groups remap file)
    dmath_test(tool_bench_${bench} dmath_tool bench ${bench_${bench}} ${few} --workers 2,3)
    foreach(transport direct mpi)
      dmath_mpi_test(tool_bench_${bench}_${transport} 4 ${tool} bench ${bench_${bench}} ${few} --transport ${transport})
    endforeach()
  endforeach()

  # Each operation once, with its check.
  set(once bench op every --size 2100 --side 37 --repeats 1 --warmup 0)
  dmath_test(tool_bench_op dmath_tool ${once} --workers 1,3)
  dmath_test(tool_bench_op_f64 dmath_tool ${once} --workers 2 --dtype f64)
  dmath_mpi_test(tool_bench_op_mpi 4 ${tool} ${once})
  if(NOT DMATH_HAVE_CUDA)
    dmath_test(tool_bench_op_emulated dmath_tool ${once} --workers 2)
    set_property(TEST tool_bench_op_emulated APPEND PROPERTY ENVIRONMENT DMATH_DEVICE=emulated DMATH_EMULATED_GPUS=2)
  endif()
  dmath_test(tool_bench_list dmath_tool bench --list)
  set_tests_properties(tool_bench_list PROPERTIES PASS_REGULAR_EXPRESSION "trsm +linalg")
  # A missing launcher is no problem, and a quota of half a core is one where there is one: the status says which were found.
  dmath_test(tool_doctor dmath_tool doctor --quick)
  set_tests_properties(tool_doctor PROPERTIES PASS_REGULAR_EXPRESSION "ok +session +[0-9]+ workers")
  dmath_mpi_test(tool_doctor_mpi 3 ${tool} doctor --quick)

  # With a job of its own under mpirun; and with an mpirun that fails, which is a problem.
  if(NOT DMATH_SANITIZE)
    add_test(NAME tool_doctor_launch COMMAND ${tool} doctor)
    set(wrong "mkdir -p bin && printf '#!/bin/sh\necho mpirun \"(Open MPI)\" 0.9.9\n[ $1 = --version ]\n' >bin/mpirun &&
               chmod +x bin/mpirun && PATH=$PWD/bin:$PATH ${tool} doctor --json >found.txt; [ $? = 1 ] &&
               [ $(grep -c '\"level\": \"problem\"' found.txt) = 2 ]")
    add_test(NAME tool_doctor_problem COMMAND bash -c "${wrong}")
    set_tests_properties(tool_doctor_launch tool_doctor_problem PROPERTIES TIMEOUT 150 LABELS mpi PROCESSORS 2 ENVIRONMENT
                                                                           "${DMATH_MPI_ENVIRONMENT}")
    set_tests_properties(tool_doctor_launch PROPERTIES PASS_REGULAR_EXPRESSION "ok +launch +three ranks met")
    dmath_test_folder(tool_doctor_problem)
  endif()

  # A journal of an example, run again: in process, as ranks, and on emulated GPUs. The first number is the journal's own.
  if(TARGET product)
    set(replay "DMATH_JOURNAL=$PWD/calls.txt DMATH_WORKERS=3 $<TARGET_FILE:product> && sums=$(${tool} replay calls.txt) &&
                [ \"$sums\" = \"$(${tool} replay --workers 1 calls.txt)\" ] &&
                [ \"$sums\" = \"$(DMATH_DEVICE=emulated DMATH_EMULATED_GPUS=2 ${tool} replay calls.txt)\" ] &&
                [ \"$sums\" = \"$(${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} 3 ${tool} replay calls.txt)\" ] && [ -n \"$sums\" ]")
    if(NOT DMATH_HAVE_CUDA AND NOT DMATH_SANITIZE)
      add_test(NAME tool_replay COMMAND bash -c "${replay}")
      set_tests_properties(tool_replay PROPERTIES TIMEOUT 60 LABELS mpi PROCESSORS 2 ENVIRONMENT "${DMATH_MPI_ENVIRONMENT}")
      dmath_test_folder(tool_replay)
    endif()
  endif()

  # On emulated GPUs a file goes in pieces; a ratio that nothing can reach is a failure.
  dmath_test(tool_bench_file_emulated dmath_tool bench ${bench_file} ${few} --workers 2 -O file_chunk=8K
             -O file_threads=2)
  dmath_test(tool_bench_file_least dmath_tool bench ${bench_file} ${few} --workers 2 --least 1000000)
  set_tests_properties(tool_bench_file_least PROPERTIES WILL_FAIL ON)
  set_property(TEST tool_bench_file_emulated APPEND PROPERTY ENVIRONMENT DMATH_DEVICE=emulated DMATH_EMULATED_GPUS=2)
  # Transports one after another, and all workers at once.
  set(transports bench transport --max 16 --transports all --ring=1K,40000 ${few})
  dmath_test(tool_bench_transports dmath_tool ${transports} --workers 2,3)
  dmath_mpi_test(tool_bench_transports_mpi 4 ${tool} ${transports})
  if(NOT DMATH_HAVE_CUDA)
    dmath_test(tool_bench_transports_emulated dmath_tool ${transports} --workers 2)
    dmath_mpi_test(tool_bench_transports_emulated_mpi 3 ${tool} ${transports})
    foreach(test tool_bench_transports_emulated tool_bench_transports_emulated_mpi)
      if(TEST ${test})
        set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT DMATH_DEVICE=emulated DMATH_EMULATED_GPUS=2)
      endif()
    endforeach()
    if(TEST tool_bench_transports_emulated_mpi)
      set_tests_properties(tool_bench_transports_emulated_mpi PROPERTIES PASS_REGULAR_EXPRESSION
                           "bytes +direct +cuda_mpi +staged +mpi")
    endif()
  endif()
  dmath_test(tool_bench_dispatch_large dmath_tool bench dispatch --count 1000 --idle 0 --size 70 --dtype f32 ${few})

  # Manual pages and completion; made anew, because some builds have them on demand only.
  dmath_test(tool_help bash -c "rm -rf pages && ${tool} man pages && ${CMAKE_CURRENT_SOURCE_DIR}/tool/check_help.sh ${tool} pages ${PROJECT_SOURCE_DIR}")
  dmath_test_folder(tool_help)
  dmath_test(tool_bench_ops ${CMAKE_CURRENT_SOURCE_DIR}/tool/check_bench_ops.sh ${tool} ${PROJECT_SOURCE_DIR})
  dmath_test_folder(tool_bench_ops)
  # What the guide asks for is enough.
  dmath_test(tool_guide ${CMAKE_CURRENT_SOURCE_DIR}/tool/check_guide.sh ${PROJECT_SOURCE_DIR} ${CMAKE_C_COMPILER}
             -I${PROJECT_SOURCE_DIR}/include -I${PROJECT_SOURCE_DIR}/src)
  dmath_test_folder(tool_guide)
  # A bar is for terminals.
  dmath_test(tool_progress bash -c "${tool} bench fill --size 500 --side 9 --repeats 1 --warmup 0 2>bar.txt >out.txt && [ ! -s bar.txt ] &&
             script -qec '${tool} bench fill --size 500 --side 9 --repeats 2 >out.txt' bar.txt >/dev/null && grep -q '0 % fill' bar.txt")
  dmath_test_folder(tool_progress)
  if(TARGET product)
    dmath_test(tool_bars ${CMAKE_CURRENT_SOURCE_DIR}/tool/check_bars.sh ${tool} $<TARGET_FILE:product>)
    dmath_test_folder(tool_bars)
  endif()

  # The documents as HTML: every link leads somewhere, every call has an entry.
  dmath_test(docs_html bash -c "(/usr/bin/python3 -c 'import markdown' || exit 77) && ${PROJECT_SOURCE_DIR}/scripts/docs.sh html")
  set_tests_properties(docs_html PROPERTIES SKIP_RETURN_CODE 77)
  dmath_test_folder(docs_html)

  # What needs no workers lets them go.
  dmath_mpi_test(tool_info_mpi 3 ${tool} info)
  dmath_mpi_test(tool_map_rows_mpi 3 ${tool} map --rows)
  # Where the workers are: by the tool on stdout, by an option on stderr; whole lines, in the workers' order.
  dmath_test(tool_placement dmath_tool info --placement --workers 3)
  dmath_mpi_test(tool_placement_mpi 4 ${tool} info --placement)
  dmath_mpi_worker_test(tool_placement_option 4 ${tool} bench dispatch --count 10 --idle 0.01 -O placement=1)
  foreach(test tool_placement tool_placement_mpi tool_placement_option)
    if(TEST ${test})
      set(lines)
      foreach(worker 0 1 2)
        # .*: lines of standard output may come between those of standard error
        string(APPEND lines "worker ${worker}: host [^\n]*, process [0-9]+, cpu, NUMA [^\n]*, cpus [^\n]* to [^\n]*\n.*")
      endforeach()
      set_tests_properties(${test} PROPERTIES PASS_REGULAR_EXPRESSION "${lines}" ENVIRONMENT_MODIFICATION
                                              "DMATH_DEVICE=set:cpu")
    endif()
  endforeach()
  dmath_mpi_worker_test(tool_explain_mpi 3 ${tool} explain gemm --m 64 --n 64 --k 64)
  dmath_mpi_worker_test(tool_help_mpi 3 ${tool} bench gemm --help)
  dmath_mpi_test(tool_refusal_mpi 3 ${tool} bench gemm --sizes none)
  if(TEST tool_refusal_mpi)
    set_tests_properties(tool_refusal_mpi PROPERTIES PASS_REGULAR_EXPRESSION "--sizes: `none' is not understood")
  endif()

  if(DMATH_PYTHON)
    # A picture of a real timeline.
    dmath_test(tool_timeline bash -c "${tool} bench groups --size 40 --count 4 --repeats 1 -w 4 -O trace=trace.json &&
               ${DMATH_PYTHON} -B ${PROJECT_SOURCE_DIR}/scripts/timeline.py trace.json -o picture.svg &&
               grep -q 'program 2 run 1' picture.svg && grep -q 'marker-end' picture.svg && grep -q '>worker 3 group 2<' picture.svg")
    dmath_test_folder(tool_timeline)
    foreach(kind threads mpi)
      set(folder ${CMAKE_CURRENT_BINARY_DIR}/run/tool_check_${kind})
      file(MAKE_DIRECTORY ${folder})
      set(check ${DMATH_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/tool/check_tool.py ${folder})
      if(kind STREQUAL "threads")
        dmath_test(tool_check_threads ${check} ${tool})
      elseif(NOT DMATH_SANITIZE MATCHES "thread")
        add_test(NAME tool_check_mpi COMMAND ${check} ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} 4 ${tool})
        set_tests_properties(tool_check_mpi PROPERTIES TIMEOUT 120 PROCESSORS 2 LABELS mpi
                                                       ENVIRONMENT "${DMATH_MPI_ENVIRONMENT};MPIEXEC_TIMEOUT=100")
      endif()
    endforeach()
  endif()
endif()
