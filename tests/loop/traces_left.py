# SPDX-License-Identifier: Apache-2.0
"""What watching may leave behind in the kernel and in a program, looked for from outside."""

import contextlib
import glob
import json
import os
import re
import subprocess

# Programs of culprit's recorder, as src/record names them.
OURS = re.compile(r'^(on_|tell_|prepare_)')


def held_programs():
    """Ids of kernel programs that a process holds, itself or by a link."""
    held = set()
    for path in glob.glob('/proc/[0-9]*/fdinfo/*'):
        with contextlib.suppress(OSError), open(path, encoding='latin-1') as info:
            held.update(int(number) for number in re.findall(r'^prog_id:\s*(\d+)', info.read(), re.MULTILINE))
    return held


def forsaken_programs():
    """Names and ids of our kernel programs that nobody holds; None where bpftool is not there."""
    done = subprocess.run(['bpftool', 'prog', 'list', '-j'], check=False, capture_output=True, text=True)
    if done.returncode != 0:
        return None
    # Those that are listed, then looked up: what begins meanwhile cannot seem forsaken.
    programs = {row['id']: row.get('name', '') for row in json.loads(done.stdout)}
    held = held_programs()
    return sorted(f'{name} ({number})' for number, name in programs.items()
                  if OURS.match(name) and number not in held)


def changed_code(pid):
    """Places of a process's mapped code that differ from their files."""
    places = []
    with open(f'/proc/{pid}/maps', encoding='utf-8') as maps, open(f'/proc/{pid}/mem', 'rb') as memory:
        for line in maps:
            words = line.split(maxsplit=5)
            if len(words) < 6 or 'x' not in words[1] or not words[5].startswith('/'):
                continue
            path = words[5].strip()
            if os.path.basename(path).startswith('libculprit_guard'):
                continue
            begin, end = (int(word, 16) for word in words[0].split('-'))
            memory.seek(begin)
            there = memory.read(end - begin)
            with open(path, 'rb') as file:
                file.seek(int(words[2], 16))
                original = file.read(end - begin)
            # Behind the file's end the last page is zero.
            if there[:len(original)] != original:
                first = next(i for i, (a, b) in enumerate(zip(there, original)) if a != b)
                places.append(f'{os.path.basename(path)}+{int(words[2], 16) + first:#x}')
    return places


def resident_mb(pid):
    """Without file mappings: those grow with what is read, and are the kernel's to take back."""
    with contextlib.suppress(OSError), open(f'/proc/{pid}/status', encoding='latin-1') as status:
        found = re.search(r'^RssAnon:\s*(\d+)', status.read(), re.MULTILINE)
        return int(found.group(1)) / 1024 if found else 0.0
    return 0.0
