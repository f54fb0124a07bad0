# shellcheck shell=bash
# What mpirun needs on a small machine and in a container. Sourced by the scripts and read by tests/CMakeLists.txt,
# so: comments, empty lines and `export NAME=value` only. OMPI_* is for Open MPI 4, PRTE_* and PMIX_* for Open MPI 5.

# A container's only user is often root.
export OMPI_ALLOW_RUN_AS_ROOT=1
export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export PRTE_ALLOW_RUN_AS_ROOT=1
export PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1

# More ranks than cores are welcome, and a rank that waits inside MPI gives its core away.
export OMPI_MCA_rmaps_base_oversubscribe=1
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
export OMPI_MCA_mpi_yield_when_idle=1

# With one or two ranks Open MPI binds each to a single core, threads included.
export OMPI_MCA_hwloc_base_binding_policy=none
export PRTE_MCA_hwloc_default_binding_policy=none

# Containers often forbid reading another process's memory, which Open MPI 4 finds out too late; and /dev/shm is small
# there.
export OMPI_MCA_btl_vader_single_copy_mechanism=none
export OMPI_MCA_btl_vader_backing_directory=/tmp
export OMPI_MCA_btl_sm_backing_directory=/tmp

export PMIX_MCA_pcompress_base_silence_warning=1
