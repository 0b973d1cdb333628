"""The statistics: pure functions of facts. numpy and scipy alone, no clock, no I/O, every RNG passed in."""
