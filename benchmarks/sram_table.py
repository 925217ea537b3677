"""Print the SRAM table of ``arch/technology_data.py`` from a CACTI 7 binary.

    python benchmarks/sram_table.py FOLDER_OF_CACTI

The folder is a built checkout of HewlettPackard/cacti (``make opt``).
"""

from __future__ import annotations

import csv
import subprocess
import sys
import tempfile
from pathlib import Path

#: What differs from CACTI's own ``cache.cfg``: the settings of hwcomponents-cacti 1.0.40. A
#: later line of a CACTI configuration replaces an earlier one.
SETTINGS = """
-Data array cell type - "itrs-lstp"
-Data array peripheral type - "itrs-lstp"
-Tag array cell type - "itrs-lstp"
-Tag array peripheral type - "itrs-lstp"
-operating temperature (K) 300
-access mode (normal, sequential, fast) - "fast"
-design objective (weight delay, dynamic power, leakage power, cycle time, area) 0:0:1000000:0:0
-deviate (delay, dynamic power, leakage power, cycle time, area) 20:10:100000:100:100
-Optimize ED or ED^2 (ED, ED^2, NONE): "ED^2"
-Cache model (NUCA, UCA)  - "UCA"
-Wire signaling (fullswing, lowswing, default) - "Global_30"
-Wire inside mat - "semi-global"
-Wire outside mat - "semi-global"
-Interconnect projection - "normal"
-Add ECC - "false"
-Array Power Gating - "false"
-WL Power Gating - "false"
-CL Power Gating - "false"
-Bitline floating - "false"
-Interconnect Power Gating - "false"
-UCA bank 1
-cache type "ram"
-tag size (b) 0
-associativity 1
-read-write port 1
-exclusive read port 0
-exclusive write port 0
-single ended read ports 0
"""
NODES_NM = (22, 32, 45, 65)
WORD_BITS = 64
SIZES = tuple(512 << step for step in range(17))


def measure(cacti: Path, node_nm: int, size_bytes: int) -> dict[str, float]:
    """One run of CACTI: its last row of results."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "sram.cfg"
        shape = (
            f"-size (bytes) {size_bytes}\n-block size (bytes) {WORD_BITS // 8}\n"
            f"-technology (u) {node_nm / 1000}\n-output/input bus width {WORD_BITS}\n"
        )
        config.write_text((cacti / "cache.cfg").read_text() + SETTINGS + shape)
        command = ["./cacti", "-infile", str(config)]
        subprocess.run(command, cwd=cacti, check=True, capture_output=True)
        with Path(f"{config}.out").open() as file:
            row = list(csv.DictReader(file))[-1]
    return {key.strip(): float(value) for key, value in row.items() if _number(value)}


def _number(text: str | None) -> bool:
    try:
        float(text or "")
    except ValueError:
        return False
    return True


def main() -> None:
    cacti = Path(sys.argv[1])
    for node in NODES_NM:
        print(f"    {node}: (")
        for size in SIZES:
            row = measure(cacti, node, size)
            read, write = row["Dynamic read energy (nJ)"], row["Dynamic write energy (nJ)"]
            print(
                f"        SramPoint({size}, {read * 1e3:.5g}, {write * 1e3:.5g}, "
                f"{row['Area (mm2)']:.5g}, {row['Standby leakage per bank(mW)'] * 1e-3:.5g}, "
                f"{row['Access time (ns)'] * 1e3:.0f}),"
            )
        print("    ),")


if __name__ == "__main__":
    main()
