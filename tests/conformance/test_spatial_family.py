"""The family ``spatial`` on shipped architectures that differ in dataflow and memories."""

from __future__ import annotations

from tests.conformance.suite import FamilyConformance


class TestTiny(FamilyConformance):
    architecture = "tiny"


class TestEdgeNpu(FamilyConformance):
    architecture = "edge_npu"


class TestWs16(FamilyConformance):
    architecture = "ws16"


class TestExposedFolds(FamilyConformance):
    architecture = "scalesim_ws16"
