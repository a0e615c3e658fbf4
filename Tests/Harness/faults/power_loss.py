#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cuts the power of a virtual machine in which a gateway runs, again and again, and asks for nothing that was seen.

QEMU is killed. What the guest has flushed is in the file of its disk (cache=writeback), what only its kernel holds is
gone, which no signal to a process imitates. The broker is outside. Behind all losses, no transition may be missing that
the numbers on both sides enclose, none may come again with another content, and the stream must be the same.
A file that the guest writes twice a second and never flushes shows that there was something to lose.

    power_loss.py --beacond .build/release/beacond [--runs 50] [--seed 1]
"""

import argparse
import glob
import os
import platform
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

from harness import GATEWAY, GROUP, ROOT, UUID, WINDOW, Beacon, Broker, Failure, Recorder, Verdict
from harness import end_cleanly_when_asked, make_scenario, wait_until, write_json
from table import keep, table, write

HERE = os.path.dirname(os.path.abspath(__file__))
UNPACKED = os.path.join(HERE, "../../../.cache/guest/tree")
MODULES = ("virtio_pci", "virtio_blk", "virtio_net", "crc32c_generic", "ext4")
WORLDS = 8  # scenarios in the image; each boot has one of them
BOOT = 180  # seconds that a boot may take on a busy machine


def missing():
    """What this machine lacks, or None."""
    if platform.machine() != "x86_64":
        return f"the guest is x86-64, this machine {platform.machine()}"
    if not glob.glob(os.path.join(UNPACKED, "lib/modules/*/kernel/fs/ext4")):
        return "no kernel for the guest; .ci/guest unpacks Debian's"
    for program in ("qemu-system-x86_64", "cpio", "zstd", "mkfs.ext4"):
        if shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin:/sbin") is None:
            return f"{program} is not installed; .ci/packages radio installs it"
    return None


def place(root, source, target):
    """A program and the libraries that the dynamic linker would load for it."""
    path = root + target
    os.makedirs(os.path.dirname(path), exist_ok=True)
    shutil.copy(source, path)
    os.chmod(path, 0o755)
    found = subprocess.run(["ldd", source], capture_output=True, text=True, check=False).stdout
    for library in re.findall(r"(/\S+) \(0x", found):
        if not os.path.exists(root + library):
            os.makedirs(os.path.dirname(root + library), exist_ok=True)
            shutil.copy(os.path.realpath(library), root + library)


def place_modules(root):
    """Flat, each after those that it needs: busybox' insmod knows no dependencies."""
    folder = glob.glob(os.path.join(UNPACKED, "lib/modules/*"))[0]
    with open(os.path.join(folder, "modules.dep"), encoding="utf-8") as file:
        needs = dict(line.rstrip("\n").split(":", 1) for line in file)
    with open(os.path.join(folder, "modules.builtin"), encoding="utf-8") as file:
        builtin = file.read()
    order = []
    for module in MODULES:
        path = next((path for path in needs if os.path.basename(path).startswith(module + ".ko")), None)
        if path is None:
            if f"/{module}.ko" not in builtin:
                raise Failure(f"the kernel has no module {module}")
            continue
        for needed in [*reversed(needs[path].split()), path]:
            if os.path.basename(needed) not in order:
                order.append(os.path.basename(needed))
                shutil.copy(os.path.join(folder, needed), os.path.join(root, "modules"))
    with open(os.path.join(root, "modules/order"), "w", encoding="utf-8") as file:
        file.write("".join(name + "\n" for name in order))


def make_image(folder, beacond, generator):
    root = os.path.join(folder, "root")
    for name in ("bin", "guest", "modules", "etc"):
        os.makedirs(os.path.join(root, name))
    place(root, os.path.join(UNPACKED, "bin/busybox"), "/bin/busybox")
    place(root, beacond, "/guest/beacond")
    subprocess.run(["strip", root + "/guest/beacond"], check=True)
    place_modules(root)
    shutil.copy(os.path.join(HERE, "guest/init"), root + "/init")
    os.chmod(root + "/init", 0o755)
    with open(root + "/etc/machine-id", "w", encoding="utf-8") as file:
        file.write("5ca1ab1e" * 4 + "\n")
    for world in range(WORLDS):
        scenario = make_scenario(generator, 120, rate=20)
        write_json(f"{root}/guest/scenario{world}.json", scenario)
    configuration = {
        "gateway": {"id": GATEWAY},
        "state_directory": "/state/beacond",
        "control_socket": "none",
        "presence": {"enter_count": 1, "exit_time": "1s"},
        "beacons": [Beacon(entry).configuration for entry in scenario["beacons"]],
        "regions": [{"name": "all", "format": "ibeacon", "uuid": UUID}],
        # The host's loopback, as the guest sees it.
        "sinks": [{"kind": "mqtt", "config": {"host": "10.0.2.2", "port": 0}}],
    }
    write_json(f"{root}/guest/plugins.json", configuration)
    with open(f"{root}/guest/plugins.json", encoding="utf-8") as file:
        text = file.read().replace('"port": 0', '"port": PORT')
    with open(f"{root}/guest/plugins.json", "w", encoding="utf-8") as file:
        file.write(text)
    image = os.path.join(folder, "image")
    subprocess.run(f"find . | cpio --create --format=newc --quiet | zstd --quiet -3 >'{image}'", shell=True, cwd=root,
                   check=True)
    shutil.rmtree(root)
    disk = os.path.join(folder, "disk")
    with open(disk, "wb") as file:
        file.truncate(64 << 20)
    subprocess.run(["/sbin/mkfs.ext4", "-q", "-F", disk], check=True)
    return image, disk


class Machine:
    """QEMU, and what the guest says of its unflushed file."""

    def __init__(self, image, disk, port, world, first):
        folder = os.path.join(UNPACKED, "boot")
        kernel = os.path.join(folder, next(name for name in os.listdir(folder) if name.startswith("vmlinuz-")))
        self.lines, self.found, self.wrote = [], None, first
        self.process = subprocess.Popen(
            ["qemu-system-x86_64", "-accel", "tcg", "-machine", "q35", "-cpu", "Nehalem", "-m", "256", "-smp", "1",
             "-nodefaults", "-no-user-config", "-nographic", "-no-reboot", "-serial", "stdio", "-kernel", kernel,
             "-initrd", image, "-append",
             f"console=ttyS0 quiet loglevel=3 panic=-1 mitigations=off port={port} world={world} first={first} ",
             "-drive", f"file={disk},format=raw,if=virtio,cache=writeback",
             "-netdev", "user,id=net", "-device", "virtio-net-pci,netdev=net"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        for line in self.process.stdout:
            text = line.decode(errors="replace").strip()
            if match := re.search(r"found (\d+)", text):
                self.found = int(match[1])
            elif match := re.search(r"wrote (\d+)", text):
                self.wrote = int(match[1])
            elif text:
                self.lines.append(text)

    def cut(self):
        self.process.kill()
        self.process.wait()
        self.thread.join()
        self.process.stdout.close()


def lose_power(options):
    verdict = Verdict("0 lost or contradicted that the broker had acknowledged, the stream goes on, ≤ 20 + 64 duplicates a"
                      " loss", runs=options.runs, duplicates=(WINDOW + GROUP) * options.runs)
    generator = random.Random(options.seed)
    losses = 0
    with tempfile.TemporaryDirectory(prefix="beacond-power-") as folder:
        image, disk = make_image(folder, os.path.abspath(options.beacond), generator)
        broker = Broker(folder)
        broker.start()
        recorder = Recorder(broker.port, ROOT)
        machine = None
        try:
            if not wait_until(lambda: recorder.is_ready, 30):
                raise Failure("the recorder does not get in")
            wrote = 0
            for number in range(options.runs + 1):
                highest, births = recorder.highest, len(recorder.births)
                machine = Machine(image, disk, broker.port, number % WORLDS, wrote)
                # A birth is this boot's, and what is above is what this boot has committed.
                if not wait_until(lambda: len(recorder.births) > births and recorder.highest > highest
                                  or machine.process.poll() is not None, BOOT):
                    raise Failure(f"boot {number}: nothing is read; the guest says {machine.lines[-8:]}")
                if machine.process.poll() is not None:
                    raise Failure(f"boot {number}: the machine ended; it says {machine.lines[-8:]}")
                losses += machine.found is not None and machine.found < wrote
                # The last boot only delivers what the one before has left.
                time.sleep(5 if number == options.runs else generator.uniform(0, 4))
                machine.cut()
                wrote = machine.wrote
                verdict.notes += [line for line in machine.lines if "set aside" in line or "damaged" in line]
                if options.verbose:
                    print(f"loss {number + 1}: {recorder.highest} transitions seen, unflushed file at {machine.found},"
                          f" {wrote} when the power was cut", flush=True)
        finally:
            if machine is not None and machine.process.poll() is None:
                machine.cut()
            recorder.stop()
            broker.stop()
    for stream, numbers in recorder.streams.items():
        missing = numbers.lost(numbers.highest)
        verdict.transitions += len(numbers.seen)
        verdict.lost += len(missing)
        verdict.must(f"{numbers.contradictions} transitions came again with another content", not numbers.contradictions)
        verdict.notes += [f"missing {sorted(missing)[:5]} of stream {stream}"] if missing else []
    verdict.repeated = len(recorder.repeated_turns)
    verdict.must(f"{len(recorder.streams)} streams", len(recorder.streams) == 1)
    verdict.must("the power was cut and nothing was lost that was not flushed: the test shows nothing", losses > 0)
    verdict.duplicates, verdict.inversions = recorder.duplicates, recorder.inversions
    verdict.regressions = len(recorder.regressions)
    verdict.notes += recorder.regressions[:2] + recorder.repeated_turns[:2]
    verdict.notes.append(f"the file that was not flushed was lost or older {losses} times")
    return verdict


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--beacond", required=True, help="the program")
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--verbose", action="store_true", help="a line for each loss")
    parser.add_argument("--results", metavar="FILE", help="rows by name, to which this one is added")
    parser.add_argument("--write", metavar="FILE", help="put the table into that page")
    options = parser.parse_args()
    end_cleanly_when_asked()
    if options.seed is None:
        options.seed = random.randrange(1_000_000)
    if reason := missing():
        print(f"skipped power losses: {reason}")
        return 69 if os.environ.get("CI") else 0
    print(f"seed {options.seed}", flush=True)
    try:
        row = lose_power(options).row()
    except Failure as failure:
        row = {"problems": [str(failure)], "notes": [], "limits": "", "runs": 0}
    row["title"] = "power of a virtual machine cut"
    rows = {"P": row}
    if options.results:
        rows = keep(options.results, rows)
    if options.write:
        write(options.write, rows)
    print(table({"P": row}))
    for note in row["notes"]:
        print(note)
    return 1 if row["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())
