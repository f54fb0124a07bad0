#!/bin/bash
# Manual pages and completion, made from the help: every command has a page, every option of its help is on it, the pages are
# right for groff, and shells complete commands, options, settings and operations.
# and `dmath bench' has every call.
#   check_help.sh dmath PAGES ROOT
set -u
dmath=$1 pages=$2 failed=0
complain() { echo "$*"; failed=1; }

# --- manual pages
commands_of() { sed -n 's/^  \([a-z-]*\) .*/\1/p'; } # of a help that lists some
check_page() { # the words of a command
    local page name help command
    page=$pages/dmath${*:+-}$(IFS=-; echo "$*").1
    help=$("$dmath" "$@" --help 2>&1)
    [ -s "$page" ] || { complain "there is no page $page"; return; }
    for name in $(sed -n 's/^ .* --\([a-z0-9-]*\).*/\1/p; s/^ *--\([a-z0-9-]*\).*/\1/p' <<<"$help" | sort -u); do
        grep -qF -- "\\-\\-${name//-/\\-}" "$page" || complain "$page does not have --$name"
    done
    if command -v groff >/dev/null; then
        local said
        said=$(groff -man -ww -z "$page" 2>&1)
        [ -z "$said" ] || complain "groff on $page: $said"
    fi
    if grep -q 'COMMAND \[OPTION' <<<"$help"; then
        for command in $(commands_of <<<"$help"); do
            check_page "$@" "$command"
        done
    fi
}
check_page
[ "$(ls "$pages"/*.1 | wc -l)" -ge 25 ] || complain "too few pages"
grep -q 'memory_limit' "$pages/dmath.1" || complain "dmath.1 lacks the settings"

# --- every call that computes has a row in `dmath bench'
headers=$3/include/dmath rows=$("$dmath" bench --list | cut -d ' ' -f 1)
for header in ewise reduce order index linalg random factors layers require; do
    for call in $(sed -n 's/^#define DM_ACCUMULATE_MAP(X) //p' "$headers/$header.h" | sed 's/X(\([a-z_]*\))/accumulate_\1/g') $(sed -n 's/^ *X[123]\{0,1\}(\([a-z0-9_]*\)) .*/\1/p; s/^DM_API DM_CHECKED dm_status dm_\([a-z0-9_]*\)(.*/\1/p' "$headers/$header.h"); do
        case $call in
        split | norm | random_*) ;;           # moves nothing; is norm_1, norm_2, norm_inf; makes seeds
        conv_shape | pool_shape) ;;           # compute nothing
        *) grep -qx "$call" <<<"$rows" || complain "dmath bench lacks $call (<dmath/$header.h>)" ;;
        esac
    done
done

# --- bash
PATH=$(dirname "$dmath"):$PATH
eval "$("$dmath" completion bash)" || complain "bash does not take it"
compopt() { :; }
offers() { # wanted, then the words of a line; the last one is being written
    local want=$1
    shift
    COMP_WORDS=("$@")
    COMP_CWORD=$(($# - 1))
    COMPREPLY=()
    _dmath
    [[ " ${COMPREPLY[*]} " == *" $want "* ]] || complain "bash: $* offers ${COMPREPLY[*]}, not $want"
}
offers doctor dmath d
offers bench dmath ""
offers gemm dmath bench g
offers argsort dmath bench args
offers --side= dmath bench sort --si
offers --layout= dmath map --l
offers cyclic: dmath map --layout = c
offers bf16 dmath map --dtype = bf
offers memory_limit= dmath info -O mem
offers verify dmath ckpt v

# --- zsh
if command -v zsh >/dev/null; then
    "$dmath" completion zsh >_dmath && zsh -n _dmath || complain "zsh does not take it"
fi
exit $failed
