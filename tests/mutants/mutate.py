#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: mutate.py TOP TO EXPLAINED COUNT SAMPLE SEED SOURCE...

Finds what a machine can change in TOP/SOURCE, chooses about COUNT changes spread over the sources
by their size, and of these SAMPLE by SEED (0: all of them). Sources with a chosen change are copied
to TO, with each change behind a switch. TO/list.c names the mutants for C, TO/list.tsv for
notice.py. README.md says what is changed and what is not.

A mutant is known by its file, function, old and new text, and the choice is by a hash of these. So
an edit elsewhere moves no mutant. EXPLAINED has a row for each one that no test can notice; a row
whose mutant is gone is an error."""
import hashlib
import os
import re
import sys

# Freed memory is watched by AddressSanitizer, locks by ThreadSanitizer, descriptors by the harness
# and valgrind. CK_NEVER is what cannot happen, and the text of the log is no promise.
NO_DROP = re.compile(r"(free|_fini|_unref|close|clear_bindings|mutex_\w+|cond_destroy|va_start|va_end|log|LOG)$")
NO_CHANGE = re.compile(r"\b(CK_NEVER|ck_cache_log|ck_nri_log|va_arg|static|typedef)\b")
OPERATORS = {"&&": "||", "||": "&&", "==": "!=", "!=": "==", "<": "<=", "<=": "<", ">": ">=",
             ">=": ">"}
OPERATOR = re.compile(r"(?<= )(&&|\|\||[=!<>]=|[<>])(?=\s)")
# 0 as a descriptor is in use
DESCRIPTOR = re.compile(r"fd (?:<|<=|>|>=) 0\b")
# the length of nothing; and what keeps a sum from overflowing, which nobody reaches
NOTHING = re.compile(r"NULL, 0\b|SIZE_MAX / \d+")
# the smaller or the greater of two: which one is taken does not matter when they are equal
EXTREME = re.compile(r"([\w.>\-]+(?:\([^()]*\))?) [<>]=? ([\w.>\-]+(?:\([^()]*\))?)\s\? "
                     r"(?:\1\s: \2|\2\s: \1)(?![\w.(])")
LIMITED = re.compile(r"([\w.>\-]+) [<>]=? ([\w.>\-]+)")
CONSTANT = re.compile(r"(?<![\w.\"])([1-9]\d*|0[0-7]*|true|false)(?=[uUlL]*(?![\w.\"]))")
COMPARED = re.compile(r"[=!<>]=\s$|[<>]\s$")
PREFIX = re.compile(r"\s*(?:(else|do)\b|(if|while|for|switch|CK_FOR_\w+|\w*FOREACH\w*)\s*\(|"
                    r"(?:case\b[^:?]*|default|[a-z_]+)\s*:)")
# of three that are chosen in a file, one is not a condition
TURNS = ("condition", "constant", "condition", "call", "condition")


def masked(text):
    """the same length, with comments, literals and preprocessor lines blotted out"""
    def blot(match):
        s = match.group(0)
        fill = "_" if s[0] in "\"'" else " "
        return "".join(c if c == "\n" else fill for c in s)
    return re.sub(r"/\*.*?\*/|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|"
                  r"(?m:^#(?:\\\n|[^\n])*$)", blot, text, flags=re.S)


def closing(mask, at):
    """where the bracket at @at is closed"""
    depth = 0
    for i in range(at, len(mask)):
        depth += (mask[i] in "([{") - (mask[i] in ")]}")
        if not depth:
            return i
    raise ValueError("unbalanced brackets")


def functions(mask):
    for match in re.finditer(r"^\{", mask, re.M):
        head = mask[:match.start()].rstrip()
        depth, i = 0, len(head) - 1
        while i >= 0:
            depth += (head[i] == ")") - (head[i] == "(")
            if not depth:
                break
            i -= 1
        yield re.search(r"(\w+)\s*$", head[:i]).group(1), match.start() + 1, \
            closing(mask, match.start())


def statements(mask, start, end):
    """what lies between ; { and } outside of brackets, without what follows its last one"""
    begin = i = start
    while i < end:
        if mask[i] in "([" or (mask[i] == "{" and mask[begin:i].rstrip().endswith("=")):
            i = closing(mask, i)
        elif mask[i] in ";{}":
            yield begin, i, mask[i]
            begin = i + 1
        i += 1


def trimmed(mask, start, end):
    while start < end and mask[start].isspace():
        start += 1
    while end > start and mask[end - 1].isspace():
        end -= 1
    return start, end


def conditions(mask, begin, end):
    """the conditions before a statement; at last, where it begins itself"""
    while True:
        match = PREFIX.match(mask, begin, end)
        if not match:
            break
        begin = match.end()
        if not match.group(2):
            continue
        close = closing(mask, begin - 1)
        if match.group(2) in ("if", "while"):
            yield match.group(2), trimmed(mask, begin, close)
        elif match.group(2) == "for":
            parts = [i for i in range(begin, close) if mask[i] == ";"]
            if len(parts) == 2:
                yield "for", trimmed(mask, parts[0] + 1, parts[1])
        begin = close + 1
    yield "", trimmed(mask, begin, end)


def expression(mask, start, end):
    """the expression in a statement whose value somebody uses: returned, or assigned"""
    match = re.compile(r"return\b\s*").match(mask, start, end)
    if match:
        return trimmed(mask, match.end(), end)
    depth = 0
    found = None
    for i in range(start, end):
        depth += (mask[i] in "([{") - (mask[i] in ")]}")
        if not depth and mask[i] == ",":
            return None
        if not depth and not found and re.match(r" [-+|&*/^]?= ", mask[i:i + 4]):
            found = trimmed(mask, mask.index("=", i) + 1, end)
    return found


def other(constant, compared):
    """0 becomes -1, which says failure or none; but 1 where it is compared. Any other number
    becomes one less, and true false."""
    if constant in ("true", "false"):
        return "false" if constant == "true" else "true"
    if constant == "0":
        return "1" if compared else "-1"
    return f"0{int(constant, 8) - 1:o}" if constant[0] == "0" else str(int(constant) - 1)


def in_index(mask, start, at):
    open_ = mask.count("[", start, at) + mask.count("{", start, at)
    return open_ > mask.count("]", start, at) + mask.count("}", start, at)


def changes(mask, text, start, end, negated):
    """kind and new text of all changes of an expression"""
    old = text[start:end]
    if negated:
        yield "condition", "!(" + old + ")"
    same = [match.span() for pattern in (EXTREME, DESCRIPTOR, NOTHING)
            for match in pattern.finditer(mask, start, end)]
    limited = LIMITED.fullmatch(mask, start, end)
    if limited and mask.startswith(f"{limited.group(1)} = {limited.group(2)};",
                                   trimmed(mask, end + 1, len(mask))[0]):
        same.append((start, end))
    if negated != "for":
        for match in OPERATOR.finditer(mask, start, end):
            if any(at <= match.start() < to for at, to in same):
                continue
            yield "condition", text[start:match.start()] + OPERATORS[match.group()] + \
                text[match.end():end]
    for match in CONSTANT.finditer(mask, start, end):
        if in_index(mask, start, match.start()) or \
                any(at < match.start() < to for at, to in same):
            continue
        compared = COMPARED.search(mask[start:match.start()])
        yield "constant", text[start:match.start()] + other(match.group(), compared) + \
            text[match.end():end]


def candidates(text):
    """function, kind, start, end, new text; None for a statement that is left out"""
    mask = masked(text)
    for name, first, last in functions(mask):
        for begin, end, closed in statements(mask, first, last):
            regions = []
            for word, (at, to) in conditions(mask, begin, end):
                if word:
                    regions.append((at, to, word))
                    continue
                if closed != ";" or at == to:
                    continue
                call = re.compile(r"(\w+)\s*\(").match(mask, at, to)
                if call and closing(mask, call.end() - 1) == to - 1:
                    if not NO_DROP.search(call.group(1)) and not NO_CHANGE.search(mask[at:to]):
                        yield name, "call", at, end + 1, None
                    if call.group(1).islower():
                        regions.append((at, to, ""))
                else:
                    part = expression(mask, at, to)
                    if part and not NO_CHANGE.search(mask[at:to]):
                        regions.append((*part, ""))
            for at, to, word in regions:
                if at == to or "\n#" in text[at:to] or NO_CHANGE.search(mask[at:to]) or \
                        mask[at] == "{":
                    continue
                for kind, new in changes(mask, text, at, to, word):
                    yield name, kind, at, to, new


def flat(text):
    return re.sub(r"\s+", " ", re.sub(r"/\*.*?\*/", " ", text, flags=re.S)).strip()


class Mutant:
    def __init__(self, file, text, function, kind, start, end, new):
        self.file, self.function, self.kind = file, function, kind
        self.start, self.end = start, end
        self.new = None if new is None else flat(new)
        self.old = flat(text[start:end])

    def identify(self, nth):
        said = "\0".join((self.file, self.function, self.old, self.new or "", str(nth)))
        self.hash = hashlib.sha256(said.encode()).hexdigest()
        self.name = f"{self.file}:{self.function}:{self.hash[:6]}"

    def ordered(self, seed):
        return hashlib.sha256(f"{seed} {self.hash}".encode()).hexdigest()


def found(top, file):
    with open(os.path.join(top, file), encoding="utf-8") as f:
        text = f.read()
    seen, result = {}, []
    for candidate in candidates(text):
        mutant = Mutant(file, text, *candidate)
        same = (mutant.function, mutant.old, mutant.new)
        seen[same] = seen.get(same, 0) + 1
        mutant.identify(seen[same])
        result.append(mutant)
    return text, result


def chosen(mutants, quota):
    """@quota of them by their hash, of different statements, the kinds in turn"""
    left = sorted(mutants, key=lambda m: m.ordered(0))
    result = []
    turn = 0
    while left and len(result) < quota:
        kind = TURNS[turn % len(TURNS)]
        turn += 1
        mutant = next((m for m in left if m.kind == kind), None)
        if mutant:
            result.append(mutant)
            left = [m for m in left if m.end <= mutant.start or m.start >= mutant.end]
    return result


def instrument(text, mutants):
    for m in sorted(mutants, key=lambda m: -m.start):
        old = text[m.start:m.end]
        if m.new is None:
            switched = f"{{ if (!CK_MUTANT({m.number})) {{ {old} }} }}"
        else:
            switched = f"(CK_MUTANT({m.number}) ? ({m.new}) : ({old}))"
        text = text[:m.start] + switched + text[m.end:]
    return text


def explanations(path, all_names):
    why = {}
    with open(path, encoding="utf-8") as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                columns = line.rstrip("\n").split("\t")
                if len(columns) != 4:
                    sys.exit(f"{path}: not name, old, new, why: {line}")
                if columns[0] not in all_names:
                    sys.exit(f"{path}: {columns[0]} is gone: take the row out")
                why[columns[0]] = columns[3]
    return why


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def main():
    top, to, explained = sys.argv[1:4]
    count, sample, seed = (int(word) for word in sys.argv[4:7])
    sources = sorted(sys.argv[7:])
    read = {file: found(top, file) for file in sources}
    lines = sum(text.count("\n") for text, _ in read.values())
    names = {m.name for _, mutants in read.values() for m in mutants}
    why = explanations(explained, names)
    made = []
    for file in sources:
        text, mutants = read[file]
        made += chosen(mutants, max(1, round(count * text.count("\n") / lines)))
    possible = len(names)
    if sample:
        made = [m for m in made if m.name not in why]
        made = sorted(made, key=lambda m: m.ordered(seed))[:sample]
        made.sort(key=lambda m: (m.file, m.start))
    for number, mutant in enumerate(made, 1):
        mutant.number = number
    for file in sources:
        mine = [m for m in made if m.file == file]
        if mine:
            write(os.path.join(to, file), '#include "tests/mutants/made.h"\n#line 1 "' + file +
                  '"\n' + instrument(read[file][0], mine))
    quoted = "".join(f'\t{{ "{m.name}", "" }},\n' for m in made)
    write(os.path.join(to, "list.c"), '#include "tests/mutants/made.h"\n\n'
          "const struct ck_mutant ck_mutants[] = {\n\t{ NULL, NULL },\n" + quoted +
          "\t{ NULL, NULL },\n};\n"
          f"unsigned char ck_mutants_unwatched[{len(made) + 1}];\n"
          f"const size_t ck_mutants_size = {len(made) + 1};\n")
    rows = [(m.name, m.file, m.kind, m.old, m.new or "", why.get(m.name, "")) for m in made]
    write(os.path.join(to, "list.tsv"), "".join("\t".join(row) + "\n" for row in rows))
    print(f"{possible} changes are possible, {len(made)} mutants of {len({m.file for m in made})} "
          "files were made")


main()
