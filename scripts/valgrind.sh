#!/usr/bin/env bash
# The quick in-process tests under valgrind.   valgrind.sh [BUILD]   (default build/release)
# Left out: tests whose oracle computes in long double, which valgrind cuts to 64 bits.
set -uo pipefail
case ${1:-} in -h | --help) sed -n '2,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" && exit 0 ;; esac
cd "$(dirname "$0")/.."
build=$(realpath -m "${1:-build/release}") status=0
tests=(test_base test_pool test_pool_cases test_layout_spec test_session test_handles test_failures test_poison test_apply
       test_trace test_program)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
top=$PWD
cd "$work"
for t in "${tests[@]}"; do
    DMATH_TEST_CASES=0.05 timeout 300 valgrind -q --error-exitcode=9 --leak-check=full \
        --errors-for-leak-kinds=definite --suppressions="$top/scripts/suppressions/valgrind.supp" \
        "$build/tests/$t" >"$t.log" 2>&1
    rc=$?
    echo "$t: exit status $rc"
    [ $rc -eq 0 ] || { status=1; grep -E "^==|FAIL" "$t.log" | head -40; }
done
exit $status
