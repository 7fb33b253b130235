#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: notice.py DIRECTORY PROGRAM... - which of the mutants in DIRECTORY/list.tsv do these tests
notice?

Each program runs once as the product is: this shows how long it takes, and which mutants' places it
reaches. Then each mutant is switched on in the programs that reach it, the shortest first, until
one of them fails. What each mutant came to stands in DIRECTORY/result.tsv.

A program that takes much longer than without the mutant hangs, which is noticed as well. How long
that is depends on what else the machine does: so the same program must then end in the same time
without the mutant, otherwise both get twice the time. A failure of a test that has threads or
clocks counts only if it happens twice.

    CK_MUTANT=NAME     this one only, with the output of the program that notices it
    CK_MUTANTS_JOBS=n  so many tests beside each other (one for each processor)
    CK_MUTANTS_LEAST=n exit 1 if less than n per cent are noticed (95)"""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor, as_completed

LIMIT_LEAST = 5  # seconds
LIMIT_TIMES = 10
LIMIT_MOST = 600
STEADY = ("tests/unit/", "tests/model/")  # neither threads nor clocks
FAILED = re.compile(r"\[  FAILED  \] (.*)|^not ok - (.*)")
BEGAN = re.compile(r"\[ RUN      \] (.*)")


class Run:
    """one run of a test program, in a directory for temporary files of its own"""

    def __init__(self, program, mutant, limit, reached=None):
        env = dict(os.environ, CRIKEEP_BREAK=mutant or "", CK_MUTANTS_REACHED=reached or "",
                   LC_ALL="C.UTF-8", TZ="UTC", CMOCKA_MESSAGE_OUTPUT="STDOUT")
        env["TMPDIR"] = tempfile.mkdtemp(prefix="ck.", dir="/tmp")
        os.chmod(env["TMPDIR"], 0o711)  # some tests give up root
        began = time.monotonic()
        self.process = subprocess.Popen([program], stdin=subprocess.DEVNULL, env=env,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        start_new_session=True)
        self.hung, self.failed, lines = False, "", []
        watch = threading.Thread(target=self.watch, args=(limit,))
        watch.start()
        for line in self.process.stdout:
            lines.append(line.decode(errors="replace"))
            failed = FAILED.search(lines[-1])
            if failed and mutant:
                self.failed = (failed.group(1) or failed.group(2)).strip()
                self.kill()  # one is enough
                break
        watch.join()
        self.process.stdout.close()
        self.status = self.process.returncode
        self.hung = self.hung or self.status == -signal.SIGALRM
        self.bad = self.failed != "" or self.status != 0
        self.output = "".join(lines)
        self.seconds = time.monotonic() - began
        shutil.rmtree(env["TMPDIR"], ignore_errors=True)

    def watch(self, limit):
        try:
            self.process.wait(limit)
        except subprocess.TimeoutExpired:
            self.hung = True
        self.kill()
        self.process.wait()

    def kill(self):
        """the test, and what it has started: that may have its output, too"""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def failing(self):
        """the test that failed, or the one that did not end"""
        began = BEGAN.findall(self.output)
        return self.failed or (began[-1].strip() if began else "before its tests")


def short(program):
    return program.rsplit("/", 1)[-1]


def baseline(pool, directory, programs, count):
    """{program: (seconds, numbers of the mutants it reaches)}"""
    def run_once(program):
        path = os.path.join(directory, "reached." + short(program))
        if os.path.exists(path):
            os.unlink(path)
        run = Run(program, None, LIMIT_MOST, path)
        if run.bad:
            sys.exit(f"{run.output[-3000:]}\n{program} fails without any mutant, {run.status}")
        with open(path, "rb") as f:
            reached = f.read()
        os.unlink(path)
        return run.seconds, {n for n in range(1, count + 1) if reached[n]}
    return dict(zip(programs, pool.map(run_once, programs)))


def notices(program, seconds, name):
    """what the program says of the mutant, or None: it passes"""
    limit = max(LIMIT_LEAST, LIMIT_TIMES * seconds)
    while limit <= LIMIT_MOST:
        run = Run(program, name, limit)
        if not run.hung:
            steady = any(part in program for part in STEADY)
            return (run.failing(), run) if run.bad and \
                (steady or Run(program, name, limit).bad) else None
        if not Run(program, None, limit).hung:
            return "hangs: " + run.failing(), run
        limit *= 2
    return None


def judge(number, name, runs):
    """(word, program, test)"""
    reach = sorted((seconds, program) for program, (seconds, reached) in runs.items()
                   if number in reached)
    for seconds, program in reach:
        found = notices(program, seconds, name)
        if found:
            if os.environ.get("CK_MUTANT"):
                print(found[1].output)
            return "noticed", short(program), found[0]
    return ("survived", f"reached by {len(reach)}", reach[0][1]) if reach else \
        ("not reached", "", "")


def table(rows, results):
    """file, made, noticed, survived, explained"""
    print(f"{'file':34} {'made':>5} {'noticed':>8} {'survived':>9} {'explained':>10}")
    sums = {}
    for name, file, _, _, _, why in rows:
        survived = results[name][0] != "noticed"
        for line in (file, "all"):
            s = sums.setdefault(line, [0, 0, 0, 0])
            s[0] += 1
            s[1] += not survived
            s[2] += survived
            s[3] += survived and why != ""
    for line in sorted(sums, key=lambda line: (line == "all", line)):
        print("{:34} {:5} {:8} {:9} {:10}".format(line, *sums[line]))
    return sums["all"]


def main():
    directory, programs = sys.argv[1], sys.argv[2:]
    least = int(os.environ.get("CK_MUTANTS_LEAST") or 95)
    only = os.environ.get("CK_MUTANT")
    with open(os.path.join(directory, "list.tsv"), encoding="utf-8") as f:
        rows = [line.rstrip("\n").split("\t") for line in f]
    began = time.monotonic()
    pool = ThreadPoolExecutor(int(os.environ.get("CK_MUTANTS_JOBS") or os.cpu_count()))
    runs = baseline(pool, directory, programs, len(rows))
    chosen = [row for row in enumerate(rows, 1) if only in (None, "", row[1][0])]
    results = {}
    with open(os.path.join(directory, "result.tsv"), "w", encoding="utf-8", buffering=1) as f:
        judged = {pool.submit(judge, number, row[0], runs): row for number, row in chosen}
        for done in as_completed(judged):
            name, _, _, old, new, why = judged[done]
            result = results[name] = done.result()
            f.write("\t".join((name, *result, old, new, why)) + "\n")
            if result[0] != "noticed" and not why:
                print(f"{result[0]}: {name}\n    {old}\n    {new or '(dropped)'}", flush=True)
            elif result[0] == "noticed" and why:
                print(f"explained, but noticed by {result[1]}: {name}", flush=True)
    if only:
        print(*results.get(only, ("there is no such mutant",)))
        return
    made, noticed, survived, explained = table(rows, results)
    hung = sum(r[2].startswith("hangs: ") for r in results.values())
    unreached = sum(r[0] == "not reached" for r in results.values())
    print(f"{noticed} of {made} mutants noticed ({100 * noticed / made:.1f} %), {hung} of them "
          f"because the test hangs; {survived} survived, {unreached} of them in places that no "
          f"test reaches, {explained} explained; {time.monotonic() - began:.0f} s")
    sys.exit(0 if 100 * noticed >= least * made else 1)


main()
