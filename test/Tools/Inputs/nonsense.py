"""nonsense.py TOOL ARGUMENT...: runs a tool with each flag of its help and a value that
means nothing. Fails if a run crashes, takes a minute, or prints control characters or
words of LLVM or CLI11. Prints the number of flags."""
import re
import subprocess
import sys

PHRASES = re.compile(
    rb"LLVM|PLEASE|Stack dump|<unknown>|Pass-Options-Parser|PassPipeline Parser|for the -|"
    rb"positional argument|value invalid|invalid value|Could not convert|[^\t\n -~\x80-\xff]"
)

tool = sys.argv[1:]
text = subprocess.run([tool[0], "--help"], check=True, capture_output=True, text=True).stdout
flags = sorted(set(re.findall(r"^ +(--?[a-z][a-z0-9-]*)", text, re.MULTILINE)))
for flag in flags:
    arguments = tool + [flag + "=\033[31m,{"]
    run = subprocess.run(arguments, capture_output=True, stdin=subprocess.DEVNULL, timeout=60)
    fault = PHRASES.search(run.stderr)
    assert run.returncode in (0, 1, 2) and not fault, (arguments, run.returncode, run.stderr)
print(len(flags), "flags")
