# The program in README.md is examples/product.c, word for word.  cmake -DROOT=<repository> -P this
cmake_minimum_required(VERSION 3.22)
file(READ ${ROOT}/README.md readme)
file(READ ${ROOT}/examples/product.c program)
string(FIND "${readme}" "```c\n${program}```" at)
if(at EQUAL -1)
  message(FATAL_ERROR "README.md does not contain examples/product.c as its C program")
endif()
