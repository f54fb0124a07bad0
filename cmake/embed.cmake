# Texts of the files in FILES (separated by "|") as one C array NAME in the file OUT, for code that is compiled at run time:
#   cmake -DFILES=a.h|b.cuh -DINCLUDED=rows.def -DNAME=text -DOUT=text.c -P embed.cmake
# Of their #include lines those of INCLUDED are replaced by its text; the others are left out.
file(READ "${INCLUDED}" included)
get_filename_component(included_name "${INCLUDED}" NAME)
string(REPLACE "|" ";" files "${FILES}")
set(text "")
foreach(file IN LISTS files)
  file(READ "${file}" part)
  # A semicolon or bracket is only text here: no command below takes the text as a list.
  string(REGEX MATCH "#include \"[^\"\n]*${included_name}\"" line "${part}")
  if(line)
    string(REPLACE "${line}" "${included}" part "${part}")
  endif()
  string(REGEX REPLACE "#include [^\n]*" "" part "${part}")
  string(APPEND text "${part}")
endforeach()
file(WRITE "${OUT}.txt" "${text}")
file(READ "${OUT}.txt" bytes HEX)
string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE "${OUT}" "extern const char ${NAME}[];\nconst char ${NAME}[] = {\n${bytes}0};\n")
