"""Random realistic programs, each timed and judged beside XLA's CPU client: ``make perf-fuzz`` (docs/perf-fuzz.md)."""
