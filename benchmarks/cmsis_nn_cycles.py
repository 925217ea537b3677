"""Cycles of CMSIS-NN's int8 kernels on a Cortex-M4, from its sources, instruction by instruction.

    git clone https://github.com/ARM-software/CMSIS_5
    python -m venv emulator && emulator/bin/pip install unicorn capstone
    PYTHONPATH=. emulator/bin/python -m benchmarks.cmsis_nn_cycles --repository CMSIS_5

Needs ``arm-none-eabi-gcc`` with newlib's headers. Kernels of two commits are compiled as two
published builds were, run in an emulator, and every instruction is charged what the technical
reference manual of the Cortex-M4 says: loads 2 cycles, 1 behind another load; stores and arithmetic
1; several registers one each and one more; two more where the next instruction is not the following
one. Memory without wait states. Prints what ``mcu_kernels`` has, cycles per multiply-accumulate and
per value made: from two layers that differ in channels, for depthwise layers from one.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: Sources, compiler flags and interface: TensorFlow 2.3.1's (third_party_downloads.inc; README of
#: NXP's eIQ TensorFlow Lite 2.3.1) with mbed's `develop` profile; TVM's of 2022
#: (src/relay/backend/contrib/cmsisnn) with Zephyr's CONFIG_SPEED_OPTIMIZATIONS (MLPerf Tiny v1.0,
#: closed/OctoML).
BUILDS = {
    "2020, -Os": ("1150e71e07c79b538efd842aba5b210a31827ae5", ("-Os", "-DINTERFACE_OF_2020")),
    "2022, -O2": ("51263182d16c92649a48144ba56c0945f9fce60e", ("-O2",)),
}
#: Without the last one the driver's own copying would call itself.
CORE = (
    *("-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16", "-w"),
    *("-ffunction-sections", "-fno-tree-loop-distribute-patterns"),
)
FOLDERS = ("CMSIS/NN", "CMSIS/DSP/Include", "CMSIS/Core/Include")
SOURCES = ("ConvolutionFunctions", "FullyConnectedFunctions", "NNSupportFunctions")
FLASH, SRAM, STACK, RETURN = 0x0800_0000, 0x2000_0000, 0x201F_0000, 0x3000_0000
LINK = (
    *("-nostdlib", f"-Wl,-Ttext={FLASH:#x}", f"-Wl,-Tdata={SRAM:#x}", "-Wl,-eprepare"),
    *(
        "-Wl,--gc-sections",
        *(f"-Wl,--undefined={x}" for x in ("convolution", "depthwise", "dense")),
    ),
)
#: Layers: rows and columns; channels of the two sizes; values per pixel.
SIDE, CHANNELS, OUTPUTS, DENSE = 8, (16, 48), 16, (64, 320)
#: Cycles of a taken branch on top of the branch itself, and of a division (2 to 12).
REFILL, DIVISION = 2, 7
SEVERAL = ("ldm", "stm", "push", "pop", "vpush", "vpop", "ldrd", "strd")


@dataclass(frozen=True, slots=True)
class Instruction:
    cycles: int
    is_load: bool
    next: int


@dataclass(slots=True)
class Counter:
    """Cycles so far, and what ran last."""

    cycles: int = 0
    last: Instruction | None = None
    known: dict[int, Instruction] = field(default_factory=dict)

    def count(self, address: int, now: Instruction) -> None:
        last = self.last
        follows = last is None or address == last.next
        behind_load = last is not None and last.is_load and follows
        self.cycles += 1 if now.is_load and behind_load else now.cycles
        self.cycles += 0 if follows else REFILL
        self.last = now


def instruction(name: str, operands: str, following: int) -> Instruction:
    if name.startswith(SEVERAL):
        registers = operands.count(",") + 1 if "{" in operands else 2
        return Instruction(1 + registers, False, following)
    if name.startswith("ldr"):
        return Instruction(2, True, following)
    return Instruction(DIVISION if name.startswith(("sdiv", "udiv")) else 1, False, following)


@dataclass(frozen=True, slots=True)
class Toolchain:
    """Where the compiler is found (``arm-none-eabi-``) and a clone of the library."""

    prefix: str
    repository: Path

    def run(self, tool: str, *arguments: str) -> str:
        command = [f"{self.prefix}{tool}", *arguments]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout

    def git(self, *arguments: str) -> bytes:
        command = ["git", "-C", str(self.repository), *arguments]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout

    def sources(self, commit: str, folder: Path) -> None:
        """Only what is read: a clone without large files has that as well."""
        listed = self.git("ls-tree", "-r", "--name-only", commit, *FOLDERS).decode()
        for path in listed.split():
            if path.endswith((".c", ".h")):
                target = folder / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(self.git("show", f"{commit}:{path}"))

    def program(self, flags: Sequence[str], folder: Path) -> tuple[bytes, dict[str, int]]:
        """The linked kernels and the addresses of the driver's functions."""
        places = (folder / "CMSIS/NN/Source" / name for name in SOURCES)
        kernels = [str(path) for place in places for path in sorted(place.glob("*.c"))]
        includes = [f"-I{folder / name}" for name in ("CMSIS/NN/Include", *FOLDERS[1:])]
        driver = str(Path(__file__).with_name("cmsis_nn_driver.c"))
        linked = str(folder / "kernels.elf")
        self.run("gcc", *CORE, *flags, *includes, *LINK, "-o", linked, driver, *kernels, "-lgcc")
        self.run("objcopy", "-O", "binary", "-j", ".text", "-j", ".rodata", linked, f"{linked}.bin")
        symbols = (line.split() for line in self.run("nm", linked).splitlines())
        found = {name: int(at, 16) for at, _, name in (s for s in symbols if len(s) == 3)}
        return Path(f"{linked}.bin").read_bytes(), found


class Emulator:
    """A Cortex-M4 with flash and SRAM that counts cycles."""

    def __init__(self, program: bytes, addresses: dict[str, int]) -> None:
        import capstone
        import unicorn
        from unicorn import arm_const

        self._registers = arm_const
        self._addresses = addresses
        self._counter = Counter()
        mode = capstone.CS_MODE_THUMB | capstone.CS_MODE_MCLASS
        self._decoder = capstone.Cs(capstone.CS_ARCH_ARM, mode)
        core = unicorn.UC_MODE_THUMB | unicorn.UC_MODE_MCLASS
        self._machine: Any = unicorn.Uc(unicorn.UC_ARCH_ARM, core)
        self._machine.ctl_set_cpu_model(arm_const.UC_CPU_ARM_CORTEX_M4)
        for start, size in ((FLASH, 0x10_0000), (SRAM, 0x20_0000), (RETURN, 0x1000)):
            self._machine.mem_map(start, size)
        self._machine.mem_write(FLASH, program)
        self._machine.hook_add(unicorn.UC_HOOK_CODE, self._on_instruction)
        self.cycles("prepare")

    def cycles(self, function: str, *arguments: int) -> int:
        """Of a call with up to four arguments."""
        numbers = self._registers
        values = {numbers.UC_ARM_REG_SP: STACK, numbers.UC_ARM_REG_LR: RETURN | 1}
        for number, argument in enumerate(arguments):
            values[getattr(numbers, f"UC_ARM_REG_R{number}")] = argument
        for register, value in values.items():
            self._machine.reg_write(register, value)
        self._counter.cycles, self._counter.last = 0, None
        self._machine.emu_start(self._addresses[function] | 1, RETURN)
        return self._counter.cycles

    def _on_instruction(self, machine: object, address: int, size: int, data: object) -> None:
        now = self._counter.known.get(address)
        if now is None:
            code = bytes(self._machine.mem_read(address, size))
            decoded = next(self._decoder.disasm(code, address), None)
            name, operands = ("", "") if decoded is None else (decoded.mnemonic, decoded.op_str)
            now = self._counter.known[address] = instruction(name, operands, address + size)
        self._counter.count(address, now)


def rates(emulator: Emulator) -> Iterator[tuple[str, float, float]]:
    """Kind of kernel, cycles per multiply-accumulate, cycles per value made."""
    for window in (3, 1):
        small, large = (
            emulator.cycles("convolution", SIDE, channels, OUTPUTS, window) for channels in CHANNELS
        )
        made = SIDE * SIDE * OUTPUTS
        yield f"conv2d {window}x{window}", *_solved(small, large, made, window * window)
    for window in (3, 5):
        spent = emulator.cycles("depthwise", SIDE, CHANNELS[0], window)
        made = SIDE * SIDE * CHANNELS[0]
        yield f"depthwise {window}x{window}", spent / (made * window * window), 0.0
    small, large = (emulator.cycles("dense", channels, OUTPUTS) for channels in DENSE)
    per_mac = (large - small) / (OUTPUTS * (DENSE[1] - DENSE[0]))
    yield "dense", per_mac, small / OUTPUTS - per_mac * DENSE[0]


def _solved(small: int, large: int, made: int, taps: int) -> tuple[float, float]:
    per_mac = (large - small) / (made * taps * (CHANNELS[1] - CHANNELS[0]))
    return per_mac, small / made - per_mac * taps * CHANNELS[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repository", type=Path, required=True, help="a clone of CMSIS_5")
    parser.add_argument("--prefix", default="arm-none-eabi-", help="what gcc's name begins with")
    parser.add_argument("--headers", help="folder of newlib's headers, if gcc does not find them")
    options = parser.parse_args()
    tools = Toolchain(options.prefix, options.repository)
    headers = ("-isystem", options.headers) if options.headers else ()
    for name, (commit, flags) in BUILDS.items():
        with tempfile.TemporaryDirectory() as folder:
            tools.sources(commit, Path(folder))
            emulator = Emulator(*tools.program((*flags, *headers), Path(folder)))
        for kind, per_mac, per_value in rates(emulator):
            print(
                f"{name}: {kind}: {per_mac:.3f} per multiply-accumulate, {per_value:.1f} per value"
            )


if __name__ == "__main__":
    main()
