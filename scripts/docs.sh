#!/usr/bin/env bash
# Builds the documents and a reference of the public headers as HTML, and checks their links.
#
#   scripts/docs.sh [FOLDER]       default: build/html; begin at index.html
#
# Needs Python's markdown (Debian: python3-markdown).
set -euo pipefail
case ${1:-} in
-h | --help) sed -n '2,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" && exit 0 ;;
esac
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
for python in python3 /usr/bin/python3; do
    if "$python" -c 'import markdown' >/dev/null 2>&1; then
        exec "$python" -B "$root/scripts/docs_html.py" "$root" "${1:-$root/build/html}"
    fi
done
echo "docs: no Python with the module markdown: apt-get install python3-markdown" >&2
exit 1
