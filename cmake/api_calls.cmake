# Makes, from the public headers, what stands between a public call and its code in the library:
#   api_calls.h   #define dm_copy dmi_api_copy, for every call that returns a checked status. All C sources of the library
#                 are compiled with it in front, so that `dm_status dm_copy(...)` in src/ops/copy.c defines dmi_api_copy, and
#                 calls from inside the library go there too;
#   api_calls.c   dm_copy itself: notes the name of the call, calls dmi_api_copy, hands failures to the error handler of
#                 the session (src/api/call.h).
# dmath.h and what it includes goes through the preprocessor first, because lists of calls may be made by macros;
# dmath_mpi.h, which needs MPI, is read as it is.
# cmake -DINCLUDE=<folder of dmath/> -DCC=<C compiler> -DOUT=<folder> -P this
cmake_minimum_required(VERSION 3.22)
execute_process(COMMAND ${CC} -E -P -I${INCLUDE} ${INCLUDE}/dmath/dmath.h OUTPUT_VARIABLE dmath COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "__attribute__((visibility(\"default\"))) __attribute__((warn_unused_result))" "DM_API DM_CHECKED" dmath
               "${dmath}")
file(READ ${INCLUDE}/dmath/dmath_mpi.h dmath_mpi)
set(renames "")
set(calls "")
set(includes "")
foreach(file dmath dmath_mpi)
  string(APPEND includes "#include <dmath/${file}.h>\n")
  set(text "${${file}}")
  string(REGEX MATCHALL "DM_API DM_CHECKED dm_status[ \n]+dm_[a-z0-9_]+\\([^();]*\\)" prototypes "${text}")
  foreach(prototype IN LISTS prototypes)
    string(REGEX REPLACE "[ \n]+" " " prototype "${prototype}")
    string(REGEX MATCH "dm_status dm_([a-z0-9_]+)\\((.*)\\)" all "${prototype}")
    set(name ${CMAKE_MATCH_1})
    set(parameters "${CMAKE_MATCH_2}")
    string(REPLACE "," ";" list "${parameters}")
    set(arguments "")
    set(end "dmi_api_end(NULL, ")
    foreach(parameter IN LISTS list)
      string(STRIP "${parameter}" parameter)
      string(REGEX MATCH "[A-Za-z0-9_]+$" argument "${parameter}")
      if(argument STREQUAL "")
        message(FATAL_ERROR "${file}.h: dm_${name}: no name at the end of the parameter '${parameter}'")
      endif()
      list(APPEND arguments ${argument})
      if(parameter MATCHES "^dm_session \\*[a-z]+$")
        set(end "dmi_api_end(${argument}, ")
      elseif(parameter MATCHES "^const dm_config \\*[a-z]+$")
        set(end "dmi_api_end_start(${argument}, ")
      endif()
    endforeach()
    string(REPLACE ";" ", " arguments "${arguments}")
    string(REGEX REPLACE "_checked$" "" said ${name}) # behind the macro dm_read and others
    string(APPEND renames "#define dm_${name} dmi_api_${name}\n")
    string(APPEND calls "\ndm_status dmi_api_${name}(${parameters});\n"
                        "dm_status dm_${name}(${parameters})\n{\n    dmi_api_begin(\"${said}\");\n"
                        "    return ${end}dmi_api_${name}(${arguments}));\n}\n")
  endforeach()
endforeach()
if(renames STREQUAL "")
  message(FATAL_ERROR "no public calls are found in ${INCLUDE}/dmath")
endif()
set(head "/* Made by cmake/api_calls.cmake from the public headers. */\n")
file(CONFIGURE OUTPUT ${OUT}/api_calls.h CONTENT "${head}${renames}" @ONLY)
file(CONFIGURE OUTPUT ${OUT}/api_calls.c CONTENT "${head}#include \"api/call.h\"\n${includes}${calls}" @ONLY)
