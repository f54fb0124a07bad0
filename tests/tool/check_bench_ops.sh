#!/bin/bash
# `dmath bench op OP' for every row of ops.def: none is refused, each is checked and has its rate beside the limit, and the profile
# says that the operation ran.
#   check_bench_ops.sh dmath ROOT
set -u
dmath=$1 failed=0 count=0
complain() { echo "$*"; failed=1; }
for op in $(sed -n 's/^DMI_OP(\([a-z0-9_]*\),.*/\1/p' "$2/src/ops/ops.def"); do
    DMATH_PROFILE=profile.txt "$dmath" bench op "$op" --json --size 3000 --side 24 --repeats 1 --warmup 0 -w 2 -O sort_exchange=1 >out.txt 2>err.txt ||
        complain "dmath bench $op: $(cat err.txt)"
    [[ $(wc -l <out.txt) -ge 1 && $(grep -c '"rate":.*"limit":.*"ratio":' out.txt) -eq $(wc -l <out.txt) ]] ||
        complain "dmath bench $op says: $(cat out.txt)"
    grep -q "^$op " profile.txt || complain "dmath bench $op does not run $op"
    count=$((count + 1))
done
[[ $count -ge 50 ]] || complain "ops.def has $count rows"
! compgen -G 'dmath-bench-*.npy' || complain "files are left"
exit $failed
