#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""beacond in a virtual machine with Debian's kernel, whose adapters are the virtual controllers of this process.

The machine is QEMU's software emulation, so that it is the same wherever it runs. It boots once; the checks of
guest/checks.sh run in it one after the other.

    radio_kernel.py --beacond .build/release/beacond
"""

import argparse
import asyncio
import os
import platform
import re
import shutil
import subprocess
import tempfile

import checklist

try:
    from bumble_air import Air
except ImportError as error:
    checklist.skip("virtual machine", f"{error}; .ci/venv radio makes .cache/venv-radio, which has it")

HERE = os.path.dirname(os.path.abspath(__file__))
UNPACKED = os.path.join(HERE, "../../.cache/guest")
# Name in the checks, and whether the controller knows the legacy commands alone.
CONTROLLERS = {"main": False, "other": False, "old": True}
# Without a word from the guest for so long, it hangs: no check is silent for longer.
SILENCE_LIMIT = 180
LINE = re.compile(r"(ok|FAILED) (\w+): (.*)")


def check_names():
    with open(os.path.join(HERE, "guest/checks.sh"), encoding="utf-8") as file:
        return re.findall(r"^check_(\w+)\(\) \{$", file.read(), re.MULTILINE)


def missing():
    """What this machine lacks, or None."""
    if platform.machine() != "x86_64":
        return f"the guest is x86-64, this machine {platform.machine()}"
    if not os.path.exists(os.path.join(UNPACKED, "complete")):
        return "no kernel for the guest; .ci/guest unpacks Debian's"
    for program in ("qemu-system-x86_64", "cpio", "zstd", "gcc"):
        if not shutil.which(program):
            return f"{program} is not installed; .ci/packages radio installs it"
    return None


def kernel():
    folder = os.path.join(UNPACKED, "tree/boot")
    return os.path.join(folder, next(name for name in os.listdir(folder) if name.startswith("vmlinuz-")))


def machine(folder, names):
    """The command line of QEMU."""
    command = [
        "qemu-system-x86_64", "-accel", "tcg", "-machine", "q35", "-cpu", "Nehalem", "-m", "768", "-smp", "1",
        "-nodefaults", "-no-user-config", "-nographic", "-no-reboot", "-serial", "stdio",
        "-kernel", kernel(), "-initrd", os.path.join(folder, "image"),
        "-append", f"console=ttyS0 quiet loglevel=3 panic=-1 mitigations=off tsc=unstable systemd.unit=checks.service systemd.show_status=0 checks={','.join(names)}",
        "-device", "virtio-serial-pci",
    ]
    for name in ["control", *CONTROLLERS]:
        command += ["-chardev", f"socket,id={name},path={os.path.join(folder, name)},reconnect=1",
                    "-device", f"virtserialport,chardev={name},name={name}"]
    return command


async def run(options):
    report = checklist.Checklist(options)
    names = [name for name in check_names() if report.is_wanted(name)]
    with tempfile.TemporaryDirectory(prefix="radio-") as folder:
        subprocess.run([os.path.join(HERE, "make_image.sh"), options.beacond, os.path.join(folder, "image")],
                       check=True)
        air = Air()
        for name, legacy_only in CONTROLLERS.items():
            await air.add(name, f"unix:{os.path.join(folder, name)}", legacy_only)
        control = await air.serve_control(os.path.join(folder, "control"))
        guest = await asyncio.create_subprocess_exec(
            *machine(folder, names), stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT)
        try:
            reported = await listen(guest, report, options.verbose)
        finally:
            await end(guest)
            control.close()
            air.close()
    for name in names:
        if name not in reported:
            report.say("FAILED", name, "the guest did not say")
    return report.finish()


async def end(guest):
    """The machine switches itself off; one that hangs is ended."""
    try:
        async with asyncio.timeout(5):
            await guest.wait()
    except TimeoutError:
        guest.kill()
        await guest.wait()


async def listen(guest, report, verbose):
    """Passes on what the guest says; the names of the checks that it reported."""
    reported = set()
    while True:
        try:
            async with asyncio.timeout(SILENCE_LIMIT):
                line = await guest.stdout.readline()
        except TimeoutError:
            print(f"the guest said nothing for {SILENCE_LIMIT} s")
            return reported
        if not line:
            return reported
        text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1bc|\r", "", line.decode(errors="replace")).rstrip()
        if found := LINE.fullmatch(text):
            reported.add(found[2])
            report.say(found[1], found[2], found[3])
        elif text.startswith("| ") or verbose or text.startswith("guest"):
            print(f"        {text}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    checklist.add_options(parser)
    parser.add_argument("--verbose", action="store_true", help="whatever the guest says")
    chosen = parser.parse_args()
    if reason := missing():
        checklist.skip("virtual machine", reason)
    checklist.run(run(chosen))
