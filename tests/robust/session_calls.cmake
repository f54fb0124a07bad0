# A line for each public call of a session, with nothing in its other arguments: CALL(dm_fill, (session, (dm_array){0}, (double){0})).
# cmake -DIN=<api_calls.c> -DOUT=<file> -P this
file(STRINGS ${IN} lines REGEX "^dm_status dm_[a-z0-9_]*\\(dm_session \\*session")
set(text "/* Made by tests/robust/session_calls.cmake from the public headers. */\n")
foreach(line IN LISTS lines)
  string(REGEX MATCH "^dm_status (dm_[a-z0-9_]*)\\(dm_session \\*session(.*)\\)$" all "${line}")
  set(name ${CMAKE_MATCH_1})
  string(REGEX REPLACE ", ([^,]*[ *])[a-z0-9_]+" ", (\\1){0}" arguments "${CMAKE_MATCH_2}")
  string(APPEND text "CALL(${name}, (session${arguments}))\n")
endforeach()
file(WRITE ${OUT} "${text}")
