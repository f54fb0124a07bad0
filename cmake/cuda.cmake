# The CUDA backend (folders cuda/ of src/, files *_cuda.c and *.cu), a part of dmath_objects where nvcc and cuBLAS are there and DMATH_CUDA does not say OFF. Everything
# that is CUDA's is in this file; DMATH_WITH_CUDA (a definition for all that uses dmath_objects) is what C sees of it.
set(DMATH_CUDA AUTO CACHE STRING "the CUDA backend: AUTO, ON or OFF")
set_property(CACHE DMATH_CUDA PROPERTY STRINGS AUTO ON OFF)
set(DMATH_CUDA_ARCHITECTURES "" CACHE STRING
    "GPUs to build for, as CMAKE_CUDA_ARCHITECTURES: 80;90. Empty: those of this host, or 90 where it has none")

# cuDNN computes convolutions on GPUs. Without it they are products of matrices by cuBLAS.
set(DMATH_CUDNN AUTO CACHE STRING "convolutions on GPUs by cuDNN: AUTO, ON or OFF")
set_property(CACHE DMATH_CUDNN PROPERTY STRINGS AUTO ON OFF)

set(DMATH_HAVE_CUDA FALSE)
if(DMATH_CUDA)
  include(CheckLanguage)
  check_language(CUDA)
  find_package(CUDAToolkit 12 QUIET)
  if(CMAKE_CUDA_COMPILER AND TARGET CUDA::cudart_static AND TARGET CUDA::cublas AND TARGET CUDA::cublasLt)
    set(DMATH_HAVE_CUDA TRUE)
  elseif(NOT DMATH_CUDA STREQUAL "AUTO")
    message(FATAL_ERROR "DMATH_CUDA=${DMATH_CUDA}, but no nvcc of CUDA 12 or later with cuBLAS is found")
  endif()
endif()

# Without CUDA its place is taken by GPUs that are emulated by threads, for tests.
get_target_property(sources dmath_objects SOURCES)
if(DMATH_HAVE_CUDA)
  list(FILTER sources EXCLUDE REGEX "/src/(device|kernels)/emulated/|_emulated\\.c$")
else()
  list(FILTER sources EXCLUDE REGEX "/src/(device|kernels)/cuda/|_cuda\\.c$")
endif()
set_property(TARGET dmath_objects PROPERTY SOURCES ${sources})

set(DMATH_HAVE_CUDNN FALSE)
if(DMATH_HAVE_CUDA AND DMATH_CUDNN)
  find_path(DMATH_CUDNN_INCLUDE cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  find_library(DMATH_CUDNN_LIBRARY cudnn HINTS ${CUDAToolkit_LIBRARY_DIR} PATH_SUFFIXES lib64 lib)
  mark_as_advanced(DMATH_CUDNN_INCLUDE DMATH_CUDNN_LIBRARY)
  if(DMATH_CUDNN_INCLUDE AND DMATH_CUDNN_LIBRARY)
    file(STRINGS ${DMATH_CUDNN_INCLUDE}/cudnn_version.h DMATH_CUDNN_MAJOR REGEX "define CUDNN_MAJOR +[0-9]+")
    string(REGEX REPLACE ".*CUDNN_MAJOR +([0-9]+).*" "\\1" DMATH_CUDNN_MAJOR "${DMATH_CUDNN_MAJOR}")
    if(DMATH_CUDNN_MAJOR GREATER_EQUAL 9)
      set(DMATH_HAVE_CUDNN TRUE)
    endif()
  endif()
  if(NOT DMATH_HAVE_CUDNN AND NOT DMATH_CUDNN STREQUAL "AUTO")
    message(FATAL_ERROR "DMATH_CUDNN=${DMATH_CUDNN}, but no cuDNN of version 9 or later is found")
  endif()
endif()
get_target_property(sources dmath_objects SOURCES)
if(DMATH_HAVE_CUDNN)
  list(FILTER sources EXCLUDE REGEX "/src/kernels/dnn/cudnn_none_cuda.c")
else()
  list(FILTER sources EXCLUDE REGEX "/src/kernels/dnn/cudnn(_plan)?_cuda.c")
endif()
set_property(TARGET dmath_objects PROPERTY SOURCES ${sources})

if(NOT DMATH_HAVE_CUDA)
  message(STATUS "CUDA backend: no")
  return()
endif()

if(DMATH_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES ${DMATH_CUDA_ARCHITECTURES})
elseif(NOT CMAKE_CUDA_ARCHITECTURES AND EXISTS /dev/nvidiactl AND CMAKE_VERSION VERSION_GREATER_EQUAL 3.24)
  set(CMAKE_CUDA_ARCHITECTURES native)
elseif(NOT CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 90)
endif()
enable_language(CUDA)
# Hopper's own instructions, which the fused product and gradients by the weights need, are only in code for 90a; later GPUs take that for 90.
set(DMATH_CUDA_CODE ${CMAKE_CUDA_ARCHITECTURES})
if(DMATH_CUDA_CODE STREQUAL "native" AND CMAKE_CUDA_ARCHITECTURES_NATIVE)
  set(DMATH_CUDA_CODE ${CMAKE_CUDA_ARCHITECTURES_NATIVE})
endif()
list(TRANSFORM DMATH_CUDA_CODE REPLACE "^90$" "90a-real;90-virtual")
list(TRANSFORM DMATH_CUDA_CODE REPLACE "^90-real$" "90a-real")
if(DMATH_CUDA_CODE MATCHES "90a")
  set_source_files_properties(src/kernels/gemm/fused.cu src/kernels/dnn/forward.cu src/kernels/dnn/weights.cu PROPERTIES COMPILE_DEFINITIONS DMATH_CUDA_SM90A)
endif()
# Ranges for profilers; headers alone, which older or stripped toolkits lack.
find_path(DMATH_NVTX_INCLUDE nvtx3/nvToolsExt.h HINTS ${CUDAToolkit_INCLUDE_DIRS} NO_DEFAULT_PATH)
mark_as_advanced(DMATH_NVTX_INCLUDE)
if(DMATH_NVTX_INCLUDE)
  set_source_files_properties(src/device/cuda/ranges.c PROPERTIES
                              COMPILE_DEFINITIONS DMATH_WITH_NVTX INCLUDE_DIRECTORIES ${DMATH_NVTX_INCLUDE})
endif()
set_source_files_properties(src/kernels/ewise/nvrtc_cuda.c PROPERTIES
                            COMPILE_DEFINITIONS "DMATH_CUDA_LIBRARY_DIR=\"${CUDAToolkit_LIBRARY_DIR}\"")
message(STATUS "CUDA backend: nvcc ${CMAKE_CUDA_COMPILER_VERSION}, for ${DMATH_CUDA_CODE}")

file(GLOB_RECURSE DMATH_CUDA_SOURCES CONFIGURE_DEPENDS src/kernels/*.cu)
target_sources(dmath_objects PRIVATE ${DMATH_CUDA_SOURCES})
set_target_properties(dmath_objects PROPERTIES
                      CUDA_ARCHITECTURES "${DMATH_CUDA_CODE}" CUDA_STANDARD 17 CUDA_STANDARD_REQUIRED ON
                      CUDA_RUNTIME_LIBRARY Static CUDA_VISIBILITY_PRESET hidden)
target_compile_definitions(dmath_objects PUBLIC DMATH_WITH_CUDA)
set(DMATH_CUDA_LIBRARIES CUDA::cudart_static CUDA::cublas CUDA::cublasLt stdc++) # stdc++: for what nvcc writes to launch kernels
if(DMATH_HAVE_CUDNN)
  list(APPEND DMATH_CUDA_LIBRARIES ${DMATH_CUDNN_LIBRARY})
  set_source_files_properties(src/device/cuda/libraries.c src/kernels/dnn/cudnn_cuda.c
                              src/kernels/dnn/cudnn_plan_cuda.c src/kernels/dnn/dnn_workspace.c PROPERTIES
                              COMPILE_DEFINITIONS DMATH_WITH_CUDNN INCLUDE_DIRECTORIES ${DMATH_CUDNN_INCLUDE})
  message(STATUS "cuDNN: ${DMATH_CUDNN_LIBRARY}")
endif()
target_link_libraries(dmath_objects PUBLIC ${DMATH_CUDA_LIBRARIES})
# The C compiler's warnings are not nvcc's. Contraction is off, as in C: a product that feeds a sum is rounded. Code of GPUs is compressed
# for size, a quarter of what it is else; drivers of CUDA 13 read it, older ones may not.
get_target_property(options dmath_objects COMPILE_OPTIONS)
set(DMATH_CUDA_OPTIONS -fmad=false -Xcompiler=-Wall)
if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
  list(APPEND DMATH_CUDA_OPTIONS --compress-mode=size)
endif()
set_property(TARGET dmath_objects PROPERTY COMPILE_OPTIONS
             "$<$<COMPILE_LANGUAGE:C>:${options}>;$<$<COMPILE_LANGUAGE:CUDA>:${DMATH_CUDA_OPTIONS}>")

# CUPTI, by which bench_cuda_calls sees what is called; without it that program is left out.
find_path(DMATH_CUPTI_INCLUDE cupti.h HINTS ${CUDAToolkit_INCLUDE_DIRS}
          ${CUDAToolkit_TARGET_DIR}/extras/CUPTI/include ${CUDAToolkit_BIN_DIR}/../extras/CUPTI/include)
find_library(DMATH_CUPTI_LIBRARY cupti HINTS ${CUDAToolkit_LIBRARY_DIR} ${CUDAToolkit_TARGET_DIR}/lib
             ${CUDAToolkit_BIN_DIR}/../extras/CUPTI/lib64 PATH_SUFFIXES lib64 lib/x64)
mark_as_advanced(DMATH_CUPTI_INCLUDE DMATH_CUPTI_LIBRARY)
if(DMATH_CUPTI_INCLUDE AND DMATH_CUPTI_LIBRARY)
  add_library(dmath_cupti INTERFACE)
  target_include_directories(dmath_cupti SYSTEM INTERFACE ${DMATH_CUPTI_INCLUDE})
  target_link_libraries(dmath_cupti INTERFACE ${DMATH_CUPTI_LIBRARY})
endif()
