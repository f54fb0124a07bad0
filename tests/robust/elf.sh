#!/bin/bash
# elf.sh LIBRARY PROGRAM HARDENED: the library makes no sockets; what the build says is hardened is.
set -u
bad=0
if nm -D --undefined-only "$1" | grep -wE 'socket|socketpair|connect|bind|listen|accept|accept4'; then
    echo "$1 calls these"
    bad=1
fi
if [ "$3" = 1 ]; then
    for file in "$1" "$2"; do
        readelf -lW "$file" | grep -q GNU_RELRO || { echo "$file: no RELRO"; bad=1; }
        readelf -dW "$file" | grep -qE 'BIND_NOW|FLAGS.* NOW' || { echo "$file: symbols are bound late"; bad=1; }
        nm -D "$file" | grep -q __stack_chk_fail || { echo "$file: no guards on the stack"; bad=1; }
    done
    readelf -hW "$2" | grep -q 'Type: *DYN' || { echo "$2: not at a random address"; bad=1; }
    nm -D --undefined-only "$1" | grep -qE '__[a-z]+_chk' || { echo "$1: no checked calls of the C library"; bad=1; }
fi
exit $bad
