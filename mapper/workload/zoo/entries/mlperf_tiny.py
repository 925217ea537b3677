"""Networks of the benchmark MLPerf Tiny."""

from __future__ import annotations

from dataclasses import replace

from mapper.workload.zoo.entry import BATCH, CLASSES, DTYPE, ZooEntry

ENTRIES = (
    ZooEntry(
        name="mlperf_kws",
        description="DS-CNN, keywords in speech, 2.7 M multiply-accumulates",
        family="mlperf_tiny",
        function="keywords",
        parameters=(BATCH, replace(CLASSES, default=12), DTYPE),
        group="MLPerf Tiny",
    ),
    ZooEntry(
        name="mlperf_ic",
        description="ResNet-8, images of 32 x 32, 12.5 M multiply-accumulates",
        family="mlperf_tiny",
        function="tiny_images",
        parameters=(BATCH, replace(CLASSES, default=10), DTYPE),
        group="MLPerf Tiny",
    ),
    ZooEntry(
        name="mlperf_ad",
        description="dense auto-encoder, anomalies in sound, 0.26 M multiply-accumulates",
        family="mlperf_tiny",
        function="anomalies",
        parameters=(BATCH, DTYPE),
        group="MLPerf Tiny",
    ),
)
