# Jobs of several ranks in bad times: ranks that stop, are killed, leave, fail, or run another build.
add_executable(job_main robust/job_main.c robust/job_common.c robust/job_stop.c robust/job_fault.c)
add_executable(init_comm_main robust/init_comm_main.c)
add_executable(kill_main robust/kill_main.c robust/job_common.c)
add_executable(survive_main robust/survive_main.c robust/job_common.c)
add_executable(wrong_main robust/job_main.c robust/job_common.c robust/job_stop.c robust/job_fault.c robust/wrong_mpi.c)
foreach(program job_main init_comm_main kill_main survive_main wrong_main)
  target_compile_definitions(${program} PRIVATE _GNU_SOURCE)
  target_link_libraries(${program} PRIVATE dmath MPI::MPI_C Threads::Threads)
endforeach()

# robust_job(name expect command...): in it JOB=what stands for job_main with its arguments, WRONG=what for those of the same
# program with calls that go wrong (wrong_mpi.c), and N=n for as many ranks.
function(robust_job name expect)
  if(DMATH_SANITIZE MATCHES "thread")
    return()
  endif()
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/run/robust_${name})
  set(command)
  foreach(word IN LISTS ARGN)
    if(word MATCHES "^JOB=(.*)$")
      list(APPEND command $<TARGET_FILE:job_main> ${CMAKE_MATCH_1} ${folder})
    elseif(word MATCHES "^WRONG=(.*)$")
      list(APPEND command $<TARGET_FILE:wrong_main> ${CMAKE_MATCH_1} ${folder})
    elseif(word MATCHES "^N=(.*)$")
      list(APPEND command ${MPIEXEC_NUMPROC_FLAG} ${CMAKE_MATCH_1})
    else()
      list(APPEND command ${word})
    endif()
  endforeach()
  add_test(NAME robust_${name} COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/robust/job.sh ${name} ${expect} ${folder}
                                       ${command})
  set_tests_properties(robust_${name} PROPERTIES TIMEOUT 120 PROCESSORS 2 LABELS "mpi;waits"
                                                 ENVIRONMENT "${DMATH_MPI_ENVIRONMENT};MPIEXEC_TIMEOUT=70")
endfunction()
set(run ${MPIEXEC_EXECUTABLE})

# ---- events, cancelled commands and time limits, with the workers as ranks of one host and of two ----
foreach(what events cancel limit)
  foreach(hosts 1 2)
    set(name ${what}_hosts${hosts})
    dmath_mpi_test(${name} 4 $<TARGET_FILE:test_${what}>)
    if(TEST ${name})
      set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT DMATH_TEST_LAUNCHED=1 DMATH_PRETEND_HOSTS=${hosts})
      dmath_test_folder(${name})
    endif()
  endforeach()
endforeach()

# ---- names of calls in failures at workers: ranks of two hosts, and workers that are not this program ----
dmath_mpi_test(names_hosts2 5 $<TARGET_FILE:test_names>)
dmath_mpi_worker_test(names_worker 5 $<TARGET_FILE:test_names>)
foreach(name names_hosts2 names_worker)
  if(TEST ${name})
    set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT DMATH_TEST_LAUNCHED=1)
  endif()
endforeach()
if(TEST names_hosts2)
  set_property(TEST names_hosts2 APPEND PROPERTY ENVIRONMENT DMATH_PRETEND_HOSTS=2)
  set_property(TEST names_worker APPEND PROPERTY ENVIRONMENT DMATH_FAULT=compute:2) # each rank has its own
endif()

# ---- the library as a file ----
set(hardened 0)
if(DMATH_HARDENING AND DMATH_FORTIFY AND DMATH_HAVE_STACK_PROTECTOR AND DMATH_HAVE_LINK_now AND CMAKE_C_LINK_PIE_SUPPORTED)
  set(hardened 1)
endif()
if(NOT DMATH_SANITIZE)
  add_test(NAME robust_elf COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/robust/elf.sh $<TARGET_FILE:dmath>
                                   $<TARGET_FILE:dmath-worker> ${hardened})
endif()

# ---- starting ----
robust_job(twice right ${run} N=4 JOB=twice)
robust_job(twice_worker right ${run} N=1 JOB=twice : N=2 $<TARGET_FILE:dmath-worker>)
robust_job(own_mpi right ${run} N=3 JOB=own_mpi)
robust_job(one_rank right ${run} N=1 JOB=alone)
robust_job(no_launcher right JOB=alone)
robust_job(srun_one_task right env PMIX_RANK=0 SLURM_STEP_NUM_TASKS=1 JOB=alone)
robust_job(srun_one_of_job right env PMI_RANK=0 SLURM_NTASKS=1 JOB=alone)
robust_job(asked right env PMI_RANK=0 JOB=asked)
robust_job(explained "status:0:call 2: program" JOB=explained)
robust_job(profile_full "status:0:profile: cannot write /dev/full: No space left on device" env DMATH_PROFILE=/dev/full JOB=alone)
robust_job(feed_hosts right ${run} N=4 JOB=feed_hosts)
robust_job(slabs right ${run} N=2 -x DMATH_DEVICE=cpu JOB=slabs)
robust_job(trace_nowhere "status:1:rank 0 .*no-such-folder/trace" ${run} N=2 -x DMATH_TRACE=no-such-folder/trace JOB=twice)
robust_job(worker_alone "status:2:start it beside a master" $<TARGET_FILE:dmath-worker>)
robust_job(worker_alone_launched "status:2:start it beside a master" ${run} N=1 $<TARGET_FILE:dmath-worker>)
robust_job(version right ${run} N=2 JOB=version : N=1 -x DMATH_FAULT=version JOB=version : N=1 JOB=version)
robust_job(direct_hosts right ${run} N=4 JOB=direct_hosts)
robust_job(replicas right ${run} N=3 JOB=replicas)
robust_job(replicas_hosts right ${run} N=4 JOB=replicas_hosts)
robust_job(pool_own "status:1:pool_own=1, but the workers are ranks" ${run} N=3 -x DMATH_POOL_OWN=1 JOB=twice)
if(NOT DMATH_HAVE_CUDA)
  robust_job(few_gpus "status:1:3 workers, but 2 GPUs on this host: start fewer, or set share_gpu=1" ${run} N=4 -x DMATH_DEVICE=emulated
             -x DMATH_EMULATED_GPUS=2 -x DMATH_SHARE_GPU=0 JOB=twice)
endif()
# A program that runs on its devices alone, asked for where it cannot.
if(NOT DMATH_HAVE_CUDA)
  set(ranges ${CMAKE_CURRENT_BINARY_DIR}/run/robust_ranges/ranges)
  robust_job(ranges "status:0:^[0-9]* begin read [0-9]*$" env DMATH_DEVICE=emulated DMATH_EMULATED_GPUS=1 DMATH_EMULATED_RANGES=${ranges}
             bash -c "\"$0\" \"$@\" && cat ${ranges}" JOB=alone)
  robust_job(exit_gpus "status:0:the program ends, but dm_finalize was not called" env DMATH_DEVICE=emulated DMATH_EMULATED_GPUS=2
             DMATH_WORKERS=2 JOB=exit)
  robust_job(slabs_gpus right ${run} N=2 -x DMATH_DEVICE=emulated -x DMATH_EMULATED_GPUS=1 JOB=slabs)
  foreach(way DMATH_WORKERS=3:workers DMATH_CAPTURE=1:capture=1 DMATH_TRANSPORT=staged:some)
    string(REPLACE ":" ";" way ${way})
    list(GET way 0 setting)
    list(GET way 1 word)
    string(REGEX REPLACE "=.*" "" name ${word})
    robust_job(program_device_${name} "status:0:program_device=on, but ${word} .*: programs run as without it" JOB=alone)
    if(TEST robust_program_device_${name})
      set_property(TEST robust_program_device_${name} APPEND PROPERTY ENVIRONMENT ${setting} DMATH_PROGRAM_DEVICE=on
                   DMATH_DEVICE=emulated DMATH_EMULATED_GPUS=2 DMATH_SHARE_GPU=1)
    endif()
  endforeach()
endif()
robust_job(bad_rank ends ${run} N=1 JOB=twice : N=1 -x DMATH_RING=nonsense JOB=twice : N=1 JOB=twice)
# A rank whose N-th allocation fails while ranks meet: all of them are told why, or it goes without.
foreach(n 5 12 15 17 18 19 25 33)
  robust_job(start_no_memory_${n} "either:init: rank 1 (.*): [a-z]" ${run} N=1 JOB=twice : N=1 -x DMATH_FAULT=malloc:${n} JOB=twice
             : N=1 JOB=twice)
endforeach()
# Ranks of two hosts, of which rank 0 and the first of the other one pass commands on (numbers of rank and allocation); ranks with
# GPUs. Before they take part in anything all know of it, so it is an error that says what was asked for, or it was not needed.
foreach(way 0:14:DMATH_PRETEND_HOSTS=2 0:31:DMATH_PRETEND_HOSTS=2 2:14:DMATH_PRETEND_HOSTS=2 2:31:DMATH_PRETEND_HOSTS=2
            1:31:DMATH_DEVICE=emulated 1:53:DMATH_DEVICE=emulated 1:71:DMATH_DEVICE=emulated 0:54:DMATH_PLACEMENT=1)
  string(REPLACE ":" ";" way ${way})
  list(GET way 0 rank)
  list(GET way 1 k)
  list(GET way 2 setting)
  string(REGEX REPLACE "^DMATH_([A-Z]+).*" "\\1" name ${setting})
  string(TOLOWER start_no_memory_${name}_${rank}_${k} name)
  foreach(r 0 1 2)
    set(bad_${r})
  endforeach()
  set(bad_${rank} -x DMATH_FAULT=malloc:${k})
  if(NOT (DMATH_HAVE_CUDA AND setting MATCHES "emulated"))
    robust_job(${name} "either:init: rank ${rank} (.*): .*\\( bytes were asked for\\|cannot start\\)" ${run} N=1 ${bad_0} JOB=twice : N=1 ${bad_1} JOB=twice
               : N=1 ${bad_2} JOB=twice : N=1 JOB=twice)
  endif()
  if(TEST robust_${name})
    set_property(TEST robust_${name} APPEND PROPERTY ENVIRONMENT ${setting} DMATH_EMULATED_GPUS=3)
  endif()
endforeach()
foreach(ranks 2 4 5)
  robust_job(init_comm_${ranks} right ${run} N=${ranks} $<TARGET_FILE:init_comm_main>)
endforeach()

robust_job(init_comm_heartbeat right ${run} N=5 $<TARGET_FILE:init_comm_main>)
if(TEST robust_init_comm_heartbeat)
  set_property(TEST robust_init_comm_heartbeat APPEND PROPERTY ENVIRONMENT DMATH_TEST_MULTIPLE=1 DMATH_PRETEND_HOSTS=2 DMATH_HEARTBEAT_S=4)
endif()

# A process that may write no file of the size of what it shares with others.
robust_job(file_limit "status:1:ulimit -f limits it" ${run} N=3 bash -c "ulimit -f 64 && exec \"$0\" \"$@\"" JOB=twice)

# ---- ending ----
robust_job(master_exits ends ${run} N=4 JOB=exit)
robust_job(master_aborts ends ${run} N=4 JOB=abort)
robust_job(worker_killed ends ${run} N=4 JOB=kill)
robust_job(death_reported "says:^dmath error: Last commands of each worker: .*/reports/dmath-report-" ${run} N=1 JOB=kill : N=3 JOB=kill)

# ---- random deaths: of workers, of rank 0, of mpirun, with a launcher that cleans up and with one that does not ----
# The bounds are generous: a machine may be slow, and nothing is waited for longer than it takes. It prints how long it took. Half
# of the tries must be as fast as all of them are on a quiet machine; the bounds there are deaths.py's own.
find_program(DMATH_PYTHON3 python3)
if(DMATH_PYTHON3 AND NOT DMATH_SANITIZE)
  foreach(option "" DMATH_FAULT=no_pidfd)
    set(name robust_deaths)
    set(more --tries 85) # 45 of workers, with those below more than 50
    if(option)
      set(name robust_deaths_no_pidfd)
      set(more --tries 17 --option ${option})
    endif()
    add_test(NAME ${name} COMMAND ${DMATH_PYTHON3} ${CMAKE_CURRENT_SOURCE_DIR}/robust/deaths.py $<TARGET_FILE:kill_main> --worker $<TARGET_FILE:dmath-worker>
                                  --beside 3 --bound 30 --named 30 --half 3 ${more}
                                  --what worker,rank0,worker,launcher,worker,group,worker,term,worker,shell,worker,script,worker,ctrl_c,worker,interrupt,worker)
    set_tests_properties(${name} PROPERTIES TIMEOUT 300 PROCESSORS 2 LABELS "mpi;waits" ENVIRONMENT "${DMATH_MPI_ENVIRONMENT}")
  endforeach()
endif()

# ---- the same of jobs that srun has started, with and without --kill-on-bad-exit ----
if(DMATH_PYTHON3 AND NOT DMATH_SANITIZE)
  add_test(NAME robust_deaths_srun COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/support/slurm_node.sh ${CMAKE_CURRENT_BINARY_DIR}/run/robust_deaths_srun
                                           ${DMATH_PYTHON3} -B ${CMAKE_CURRENT_SOURCE_DIR}/robust/deaths_srun.py $<TARGET_FILE:kill_main>
                                           --worker $<TARGET_FILE:dmath-worker> --tries 12 --bound 30 --named 30 --half 3)
  set_tests_properties(robust_deaths_srun PROPERTIES TIMEOUT 300 PROCESSORS 2 SKIP_RETURN_CODE 77 LABELS "mpi;waits"
                                                     ENVIRONMENT "${DMATH_MPI_ENVIRONMENT}")
endif()

# ---- calls of one rank fail while the ranks meet ----
if(DMATH_PYTHON3 AND NOT DMATH_SANITIZE AND NOT DMATH_HAVE_CUDA)
  add_test(NAME robust_starts COMMAND ${DMATH_PYTHON3} -B ${CMAKE_CURRENT_SOURCE_DIR}/robust/starts.py $<TARGET_FILE:job_main> --beside 3
                                      --settings DMATH_DEVICE=emulated,DMATH_PRETEND_HOSTS=2 --kind malloc,control,driver --first 8 --last 68 --step 60)
  set_tests_properties(robust_starts PROPERTIES TIMEOUT 900 PROCESSORS 2 LABELS "mpi;waits" ENVIRONMENT "${DMATH_MPI_ENVIRONMENT}")
endif()

# ---- the script of a batch job is killed alone ----
if(NOT DMATH_SANITIZE)
  add_test(NAME robust_batch_slurm COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/support/slurm_node.sh ${CMAKE_CURRENT_BINARY_DIR}/run/robust_batch_slurm
                                           bash ${CMAKE_CURRENT_SOURCE_DIR}/robust/batch_slurm.sh $<TARGET_FILE:kill_main> ${MPIEXEC_EXECUTABLE})
  set_tests_properties(robust_batch_slurm PROPERTIES TIMEOUT 200 PROCESSORS 2 SKIP_RETURN_CODE 77 LABELS "mpi;waits"
                                                     ENVIRONMENT "${DMATH_MPI_ENVIRONMENT}")
endif()

# ---- workers that pretend to be on two hosts: deaths and silence, both ways ----
if(DMATH_PYTHON3 AND NOT DMATH_SANITIZE)
  add_test(NAME robust_heartbeat COMMAND ${DMATH_PYTHON3} ${CMAKE_CURRENT_SOURCE_DIR}/robust/deaths.py $<TARGET_FILE:kill_main>
                                         --worker $<TARGET_FILE:dmath-worker> --hosts 2 --launcher recovery --tries 20 --heartbeat 4
                                         --what worker,rank0,stop,stop0,suspend --beside 3 --bound 30 --named 30)
  set_tests_properties(robust_heartbeat PROPERTIES TIMEOUT 300 PROCESSORS 2 LABELS "mpi;waits" ENVIRONMENT "${DMATH_MPI_ENVIRONMENT}")
endif()

# ---- little of the machine, or none for a while: nobody may complain ----
if(DMATH_PYTHON3 AND NOT DMATH_SANITIZE)
  add_test(NAME robust_false_alarms COMMAND ${DMATH_PYTHON3} -B ${CMAKE_CURRENT_SOURCE_DIR}/robust/false_alarms.py $<TARGET_FILE:kill_main>
                                            --worker $<TARGET_FILE:dmath-worker> --jobs 6 --minutes 1 --beside 3)
  set_tests_properties(robust_false_alarms PROPERTIES TIMEOUT 700 PROCESSORS 2 LABELS "mpi;waits" ENVIRONMENT "${DMATH_MPI_ENVIRONMENT}")
endif()

robust_job(away right ${run} N=5 JOB=away)

# ---- a death that ends the session alone: seven in a job, until no worker is left ----
if(DMATH_HAVE_CHECKPOINTS)
  # Open MPI's handler of SIGSEGV takes a backtrace, which may wait for ever for the memory allocator: then nobody dies.
  set(own_signals --mca opal_signal 8)
  foreach(seed RANGE 1 7)
    robust_job(survive_${seed} right ${run} --enable-recovery ${own_signals} N=8 $<TARGET_FILE:survive_main>
               ${CMAKE_CURRENT_BINARY_DIR}/run/robust_survive_${seed} ${seed})
  endforeach()
  robust_job(survive_comm right ${run} --enable-recovery ${own_signals} N=4 $<TARGET_FILE:survive_main>
             ${CMAKE_CURRENT_BINARY_DIR}/run/robust_survive_comm 1 own_mpi)
  foreach(seed RANGE 1 3)
    robust_job(survive_between_${seed} right ${run} --enable-recovery ${own_signals} N=5 $<TARGET_FILE:survive_main>
               ${CMAKE_CURRENT_BINARY_DIR}/run/robust_survive_between_${seed} ${seed} between)
  endforeach()
  robust_job(survive_once right ${run} --enable-recovery ${own_signals} N=5 $<TARGET_FILE:survive_main>
             ${CMAKE_CURRENT_BINARY_DIR}/run/robust_survive_once 1 once)
  robust_job(survive_late right ${run} --enable-recovery ${own_signals} N=4 $<TARGET_FILE:survive_main>
             ${CMAKE_CURRENT_BINARY_DIR}/run/robust_survive_late 1 late)
  robust_job(survive_refused right ${run} --enable-recovery ${own_signals} N=4 $<TARGET_FILE:survive_main>
             ${CMAKE_CURRENT_BINARY_DIR}/run/robust_survive_refused 1 refused)
  robust_job(survive_blind "status:0:option liveness is 0, so nobody notices deaths" ${run} --enable-recovery N=3 -x DMATH_LIVENESS=0
             $<TARGET_FILE:survive_main> ${CMAKE_CURRENT_BINARY_DIR}/run/robust_survive_blind 1)
  robust_job(survive_not "status:1:start it with mpirun --enable-recovery" ${run} N=3 $<TARGET_FILE:survive_main>
             ${CMAKE_CURRENT_BINARY_DIR}/run/robust_survive_not 1)
  robust_job(survive_hosts "status:0:workers of one host with direct transport" ${run} --enable-recovery N=4 -x DMATH_PRETEND_HOSTS=2
             $<TARGET_FILE:survive_main> ${CMAKE_CURRENT_BINARY_DIR}/run/robust_survive_hosts 1)
  robust_job(survive_messages "status:0:MPI does not take back those to a dead rank" ${run} --enable-recovery N=3 -x DMATH_TRANSPORT=mpi
             $<TARGET_FILE:survive_main> ${CMAKE_CURRENT_BINARY_DIR}/run/robust_survive_messages 1)
  if(NOT DMATH_HAVE_CUDA)
    robust_job(survive_gpus "status:0:work on a GPU that waits for a dead worker never ends" ${run} --enable-recovery N=3
               -x DMATH_DEVICE=emulated -x DMATH_EMULATED_GPUS=2 $<TARGET_FILE:survive_main>
               ${CMAKE_CURRENT_BINARY_DIR}/run/robust_survive_gpus 1)
  endif()
endif()

# ---- a worker is stopped ----
foreach(what stop stop_hosts stop_finalize stop_continue stop_continue_hosts stop_ring stop_move)
  robust_job(${what} right ${run} N=4 JOB=${what})
endforeach()

# ---- a call of MPI by which the ranks agree fails in one rank. How many there are before a session works depends on how long
# ranks wait for one another, so these are among the first ones. ----
foreach(way 1:0 9:1 20:0 35:2:hosts 45:0:hosts) # number of the call, rank
  string(REPLACE ":" ";" way ${way})
  list(GET way 0 k)
  list(GET way 1 rank)
  set(job twice)
  if(way MATCHES "hosts")
    set(job replicas_hosts)
  endif()
  foreach(r 0 1 2)
    set(bad_${r})
  endforeach()
  set(bad_${rank} -x DMATH_FAULT=control:${k})
  robust_job(control_${job}_${k}_${rank} "says:rank ${rank} (process [0-9]*): MPI_[A-Za-z_]* failed: .*: the rank leaves" ${run}
             N=1 ${bad_0} JOB=${job} : N=1 ${bad_1} JOB=${job} : N=1 ${bad_2} JOB=${job})
endforeach()

# ---- a failure in one rank ----
foreach(options transport=auto transport=mpi pretend_hosts=2)
  foreach(fault compute:1 compute:2 compute:7 alloc:6 alloc:8)
    string(REGEX REPLACE "[:=]" "_" name "fault_${options}_${fault}")
    robust_job(${name} right ${run} N=2 JOB=fault : N=1 -x DMATH_FAULT=${fault} JOB=fault : N=1 JOB=fault)
    if(TEST robust_${name})
      set_property(TEST robust_${name} APPEND PROPERTY ENVIRONMENT DMATH_TEST_OPTIONS=log=error,${options})
    endif()
  endforeach()
endforeach()

# ---- MPI, and memory of other processes, that do wrong in one rank or in all (wrong_mpi.c) ----
robust_job(wrong_threads right ${run} -x DMATH_TEST_WRONG=threads N=2 WRONG=no_threads)
robust_job(wrong_probe "status:1:rank [02] .*a message from endpoint 0 to endpoint [12] came out wrong" ${run} N=1 WRONG=twice : N=1
           -x DMATH_TEST_WRONG=probe WRONG=twice : N=1 WRONG=twice)
robust_job(wrong_frames right ${run} N=1 -x DMATH_TEST_WRONG=frames WRONG=damaged_hosts : N=3 WRONG=damaged_hosts)
robust_job(wrong_payload right ${run} N=1 WRONG=damaged_payload : N=1
           -x DMATH_TEST_WRONG=payload WRONG=damaged_payload : N=1 WRONG=damaged_payload)
robust_job(wrong_report "status:0:a report from rank 3 is damaged and left out" ${run} N=3 WRONG=twice : N=1
           -x DMATH_TEST_WRONG=report WRONG=twice)
set(last N=2 WRONG=twice : N=1 -x DMATH_TEST_WRONG=open)
robust_job(wrong_hub "status:0:rank 2 .*: cannot map control memory of process .*: Permission denied: all ranks talk through messages"
           ${run} ${last}:dmath-hub WRONG=twice)
robust_job(wrong_hub_direct "status:1:rank 2 .*: cannot map control memory of process .*: Permission denied)" ${run} ${last}:dmath-hub
           WRONG=twice)
robust_job(wrong_slabs right ${run} ${last}:dmath-slab WRONG=twice)
robust_job(wrong_slabs_direct "status:1:transport=direct, but endpoints [0-2] and [0-2] cannot write each other's memory" ${run}
           ${last}:dmath-slab WRONG=twice)
set(later N=1 WRONG=unmapped : N=1 -x DMATH_TEST_WRONG=later)
robust_job(wrong_maps right ${run} ${later}:dmath-slab WRONG=unmapped : N=1 WRONG=unmapped)
robust_job(wrong_reads right ${run} N=1 WRONG=unread : N=1 -x DMATH_TEST_WRONG=later:dmath-slab WRONG=unread : N=1 WRONG=unread)
if(NOT DMATH_HAVE_CUDA)
  robust_job(wrong_maps_gpus right ${run} ${later}:dmath-emulated-gpu WRONG=unmapped : N=1 WRONG=unmapped)
  robust_job(wrong_reads_gpus right ${run} N=1 WRONG=unread : N=1 -x DMATH_TEST_WRONG=later:dmath-slab WRONG=unread : N=1
             WRONG=unread)
  robust_job(wrong_lost "status:1:a message between GPUs has not come in 3 s: set transport=staged" ${run} N=2 WRONG=twice : N=1
             -x DMATH_TEST_WRONG=lost WRONG=twice : N=1 WRONG=twice)
  robust_job(wrong_gpus "status:1:transport=direct, but GPUs of one host cannot reach each other's memory" ${run}
             ${last}:dmath-emulated-gpu WRONG=twice)
endif()
set(cpu DMATH_DEVICE=cpu)
set(emulated DMATH_DEVICE=emulated)
foreach(way probe:DMATH_TRANSPORT=mpi:${cpu} report:DMATH_PRETEND_HOSTS=2:${cpu} hub:${cpu} hub_direct:DMATH_TRANSPORT=direct:${cpu}
            slabs:${cpu} maps:${cpu} reads:${cpu} maps_gpus:${emulated}:DMATH_EMULATED_GPUS=2 reads_gpus:${emulated}:DMATH_EMULATED_GPUS=2
            slabs_direct:DMATH_TRANSPORT=direct:${cpu} lost:DMATH_PRETEND_HOSTS=2:DMATH_MEET_S=3:${emulated}:DMATH_EMULATED_GPUS=3
            gpus:DMATH_TRANSPORT=direct:${emulated}:DMATH_EMULATED_GPUS=2)
  string(REPLACE ":" ";" settings ${way})
  list(POP_FRONT settings name)
  if(TEST robust_wrong_${name})
    set_property(TEST robust_wrong_${name} APPEND PROPERTY ENVIRONMENT ${settings})
  endif()
endforeach()

# ---- an allocation fails in one rank: when they meet, when they map each other's memory, when it runs ----
foreach(k 1 2 14 32 60)
  robust_job(memory_${k} ends ${run} N=2 JOB=twice : N=1 -x DMATH_FAULT=malloc:${k} JOB=twice)
endforeach()

# ---- and from then on all of them ----
foreach(k 1 2 14 32 60)
  robust_job(memory_${k}_on ends ${run} N=2 JOB=twice : N=1 -x DMATH_FAULT=malloc:${k}:on JOB=twice)
endforeach()

# ---- idle ----
foreach(variant "" DMATH_PRETEND_HOSTS=2 DMATH_TRANSPORT=mpi)
  string(REGEX REPLACE "^.*_([A-Z]+)=.*$" "_\\1" suffix "${variant}")
  string(TOLOWER "idle${suffix}" name)
  robust_job(${name} right ${run} N=9 JOB=idle)
  if(variant AND TEST robust_${name})
    set_property(TEST robust_${name} APPEND PROPERTY ENVIRONMENT ${variant})
  endif()
endforeach()

# ---- MPI and memory of GPUs: what it says, what is found, what is asked for ----
if(TARGET dmath_tool AND NOT DMATH_HAVE_CUDA)
  set(bench $<TARGET_FILE:dmath_tool> bench transport --max 4 --repeats 2)
  set(wrong N=1 -x DMATH_FAULT=cuda_mpi $<TARGET_FILE:dmath-worker>) # one rank sends a wrong value at the start
  set(far -O pretend_hosts=2,log=info)
  robust_job(cuda_mpi "status:0:transport cuda_mpi" ${run} N=3 ${bench} ${far})
  robust_job(cuda_mpi_no "status:0:transport staged" ${run} N=3 -x DMATH_EMULATED_CUDA_MPI=0 ${bench} ${far})
  robust_job(cuda_mpi_no_forced "status:1:transport=cuda_mpi, but the MPI library does not report" ${run} N=3
             -x DMATH_EMULATED_CUDA_MPI=0 ${bench} -t cuda_mpi)
  robust_job(cuda_mpi_wrong "status:0:came out wrong: payloads between GPUs pass through host memory" ${run} N=1 ${bench}
             ${far} : ${wrong} : N=1 $<TARGET_FILE:dmath-worker>)
  robust_job(cuda_mpi_wrong_forced "status:1:transport=cuda_mpi, but rank 2 .* MPI says .* came out wrong" ${run} N=1 ${bench}
             -t cuda_mpi : ${wrong} : N=1 $<TARGET_FILE:dmath-worker>)
  robust_job(cuda_mpi_cpu "status:1:transport=cuda_mpi is for workers with GPUs" ${run} N=3 -x DMATH_DEVICE=cpu ${bench}
             -t cuda_mpi)
  robust_job(cuda_mpi_threads "status:1:transport=cuda_mpi is for workers that are processes" ${bench} -t cuda_mpi)
  # Blocks of more than one piece, of rows and not.
  robust_job(cuda_mpi_pieces "status:0:3000 f64" ${run} N=3 $<TARGET_FILE:dmath_tool> bench remap --sizes 3000
             --dtype f64 --repeats 1 -t cuda_mpi)
  foreach(name "" _no _no_forced _wrong _wrong_forced _cpu _threads _pieces)
    if(TEST robust_cuda_mpi${name})
      set_property(TEST robust_cuda_mpi${name} APPEND PROPERTY ENVIRONMENT DMATH_DEVICE=emulated DMATH_EMULATED_GPUS=2)
    endif()
  endforeach()
endif()

# Jobs in which nothing stops, dies or waits for a while may run beside any other tests. The rest do little but wait: label
# waits, by which scripts/test.sh runs many of them at once, and nothing else beside them.
foreach(name twice twice_worker own_mpi one_rank no_launcher worker_alone worker_alone_launched version direct_hosts replicas replicas_hosts
             init_comm_2 init_comm_4 init_comm_5)
  list(APPEND beside robust_${name})
endforeach()
get_property(tests DIRECTORY PROPERTY TESTS)
list(FILTER tests INCLUDE REGEX "^robust_(fault|cuda_mpi|wrong_[^l]|srun|asked|explained|profile_full|program_device|ranges|exit_gpus|feed_hosts|trace|slabs)")
foreach(test IN LISTS beside tests)
  if(TEST ${test})
    set_tests_properties(${test} PROPERTIES PROCESSORS 1 LABELS mpi)
  endif()
endforeach()

# ---- every public call of a session ----
add_custom_command(OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/robust/session_calls.h
                   COMMAND ${CMAKE_COMMAND} -DIN=${DMATH_GENERATED}/api_calls.c -DOUT=${CMAKE_CURRENT_BINARY_DIR}/robust/session_calls.h
                           -P ${CMAKE_CURRENT_SOURCE_DIR}/robust/session_calls.cmake
                   DEPENDS ${DMATH_GENERATED}/api_calls.c ${CMAKE_CURRENT_SOURCE_DIR}/robust/session_calls.cmake VERBATIM)
target_sources(test_session_calls PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/robust/session_calls.h)
target_include_directories(test_session_calls PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/robust)

# These measure time.
set_tests_properties(test_queueing test_channels test_watchdog test_idle test_overlap test_silence PROPERTIES RUN_SERIAL ON)

include(robust/break.cmake)
