"""Measured comparisons of headwater with its peers: `python -m benchmarks`, or `make bench`.

One folder per case holds the same job written once per framework; `harness` runs the jobs and writes the report;
`suite` says which jobs run with which sizes, and which ratios are promised.
"""
