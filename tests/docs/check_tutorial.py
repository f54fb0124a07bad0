"""Compiles and runs the C code of a page: whole programs, and fragments, which get a session `s` and what a comment
`<!-- given: ... -->` before them declares.

    check_tutorial.py PAGE.md COMPILER INCLUDE LIBRARY
"""

import os
import re
import subprocess
import sys
import tempfile

FRAME = """#include <dmath/check.h>
{functions}
int main(void)
{{
    dm_session *s;
    DM_CHECK(dm_init(NULL, &s));
{calls}    DM_CHECK(dm_finalize(s, NULL));
}}
"""


def programs_of(page):
    whole, fragments = [], []
    for given, code in re.findall(r"(?:<!-- given:\n(.*?)-->\n)?```c\n(.*?)```", page, re.S):
        if "int main" in code:
            whole.append(code)
        else:
            fragments.append(f"static void fragment_{len(fragments)}(dm_session *s)\n{{\n{given}{code}}}\n")
    calls = "".join(f"    DM_CHECK(dm_scope_begin(s));\n    fragment_{n}(s);\n    DM_CHECK(dm_scope_end(s, NULL, 0));\n"
                    for n in range(len(fragments)))
    return whole + [FRAME.format(functions="\n".join(fragments), calls=calls)], len(fragments)


def main(page, compiler, include, library):
    programs, fragments = programs_of(open(page, encoding="utf-8").read())
    if fragments < 5:
        sys.exit(f"{page}: {fragments} fragments were found")
    with tempfile.TemporaryDirectory() as folder:
        for number, text in enumerate(programs):
            source, program = os.path.join(folder, f"{number}.c"), os.path.join(folder, str(number))
            with open(source, "w", encoding="utf-8") as out:
                out.write(text)
            subprocess.run([compiler, "-std=c11", "-Wall", "-Wextra", "-Werror", "-Wno-unused-but-set-variable", "-I" + include, source,
                            library, "-Wl,-rpath," + os.path.dirname(library), "-lm", "-o", program], check=True)
            for workers in "1", "3":
                subprocess.run([program], check=True, cwd=folder, env={**os.environ, "DMATH_WORKERS": workers}, stdout=subprocess.DEVNULL)
    print(f"{len(programs)} programs, {fragments} fragments")


if __name__ == "__main__":
    main(*sys.argv[1:])
