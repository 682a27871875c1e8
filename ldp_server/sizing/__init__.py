"""From users a day to servers, disk and money, by arithmetic from measured unit costs (`ldp-server size`).

figures      the unit costs, as `python -m benchmarks scale --only costs --json` prints them
deployment   the arithmetic
"""
