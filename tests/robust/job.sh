#!/bin/bash
# job.sh <what> <expect> <folder> mpirun-command...: runs the command, whose ranks leave their process ids in <folder>
# (job_main), and looks at how it ends. expect: right (rank 0 says so), ends (anything, but soon), says:TEXT (a part
# of its output, soon), status:N:TEXT (mpirun's exit status and a part of its output), or either:TEXT (right, or status 1 and a
# part of its output). No rank may be left behind.
set -u
expect=$2
folder=$3
shift 3
rm -rf "$folder"
mkdir -p "$folder"
begin=$SECONDS
timeout -k 5 80 "$@" >"$folder/output" 2>&1
status=$?
took=$((SECONDS - begin))
cat "$folder/output"
echo "status $status after $took s"
bad=0
left=
for _ in {1..40}; do
    left=
    for file in "$folder"/[0-9]*; do
        pid=$(cat "$file" 2>/dev/null) && [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null && left="$left $pid"
    done
    [ -z "$left" ] && break
    sleep 0.5
done
if [ -n "$left" ]; then
    echo "left behind:$left"
    # shellcheck disable=SC2086 # one argument a process
    kill -KILL $left
    bad=1
fi
if [ $took -ge 80 ]; then
    echo "it did not end"
    bad=1
fi
case $expect in
right)
    grep -q '^right$' "$folder/output" || bad=1
    ;;
ends)
    [ $took -le 40 ] || bad=1
    ;;
says:*)
    [ $took -le 40 ] || bad=1
    grep -q -- "${expect#says:}" "$folder/output" || bad=1
    ;;
status:*)
    rest=${expect#status:}
    [ "$status" = "${rest%%:*}" ] || bad=1
    grep -q -- "${rest#*:}" "$folder/output" || bad=1
    ;;
either:*)
    if [ "$status" = 0 ]; then
        grep -q '^right$' "$folder/output" || bad=1
    else
        [ "$status" = 1 ] || bad=1
        grep -q -- "${expect#either:}" "$folder/output" || bad=1
    fi
    ;;
esac
exit $bad
