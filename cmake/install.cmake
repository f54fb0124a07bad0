# Where things go on `cmake --install`, and how other projects find them: find_package(dmath) and pkg-config dmath.
include(CMakePackageConfigHelpers)

install(DIRECTORY include/dmath TYPE INCLUDE FILES_MATCHING PATTERN "*.h")
install(TARGETS dmath dmath_nn EXPORT dmathTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
# An export of its own: whoever links the static library needs MPI and OpenBLAS too.
install(TARGETS dmath_static EXPORT dmathStaticTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET dmath_blas)
  install(TARGETS dmath_blas LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(FILES ${PROJECT_BINARY_DIR}/dmath-blas/libblas.so.3 DESTINATION ${CMAKE_INSTALL_LIBDIR}/dmath-blas)
  install(FILES blas/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/blas)
endif()
install(FILES LICENSE README.md CHANGELOG.md CONTRIBUTING.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md" PATTERN "*.svg")
# The examples with their data: a project of their own, which finds the installed library.
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR})

# Installed programs find the library beside them, wherever the prefix is moved.
file(RELATIVE_PATH DMATH_BIN_TO_LIB ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
set_target_properties(${DMATH_PROGRAMS} PROPERTIES INSTALL_RPATH "$ORIGIN/${DMATH_BIN_TO_LIB}")
install(TARGETS ${DMATH_PROGRAMS} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

# What the target `manual` has made.
if(DMATH_MANUAL)
  install(DIRECTORY ${DMATH_MANUAL}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 FILES_MATCHING PATTERN "*.1")
  install(FILES ${DMATH_MANUAL}/dmath.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME dmath OPTIONAL)
  install(FILES ${DMATH_MANUAL}/_dmath DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions OPTIONAL)
endif()

set(DMATH_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/dmath)
install(EXPORT dmathTargets NAMESPACE dmath:: DESTINATION ${DMATH_CMAKE_DIR})
install(EXPORT dmathStaticTargets NAMESPACE dmath:: DESTINATION ${DMATH_CMAKE_DIR})
configure_package_config_file(cmake/dmathConfig.cmake.in ${PROJECT_BINARY_DIR}/dmathConfig.cmake
                              INSTALL_DESTINATION ${DMATH_CMAKE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/dmathConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/dmathConfig.cmake ${PROJECT_BINARY_DIR}/dmathConfigVersion.cmake
        DESTINATION ${DMATH_CMAKE_DIR})

# Paths in dmath.pc are relative to the file, so that the prefix may be chosen at install time or moved.
file(RELATIVE_PATH DMATH_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" DMATH_PC_TO_PREFIX "${DMATH_PC_TO_PREFIX}")
set(DMATH_PC_PRIVATE "")
set(DMATH_JANSSON_LIBRARIES "")
if(DMATH_HAVE_CHECKPOINTS)
  set(DMATH_JANSSON_LIBRARIES ${JANSSON_LINK_LIBRARIES})
endif()
foreach(library IN LISTS MPI_C_LIBRARIES OPENBLAS_LINK_LIBRARIES DMATH_JANSSON_LIBRARIES HWLOC_LINK_LIBRARIES DMATH_ONEDNN_LIBRARIES)
  if(NOT library IN_LIST DMATH_PC_PRIVATE)
    list(APPEND DMATH_PC_PRIVATE ${library})
  endif()
endforeach()
if(DMATH_HAVE_CUDA)
  list(APPEND DMATH_PC_PRIVATE -L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -lcublas -lstdc++ -lrt -ldl)
  if(DMATH_HAVE_CUDNN)
    list(APPEND DMATH_PC_PRIVATE ${DMATH_CUDNN_LIBRARY})
  endif()
endif()
list(APPEND DMATH_PC_PRIVATE -lpthread -lm)
list(JOIN DMATH_PC_PRIVATE " " DMATH_PC_PRIVATE)
configure_file(cmake/dmath.pc.in ${PROJECT_BINARY_DIR}/dmath.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/dmath.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
