"""What the package promises in numbers, measured: one file a question.

``python -m benchmarks`` answers them all, ``python -m benchmarks observers_speed --quick`` one of
them in a hurry. Tables are printed, and the measurements behind them are written as tidy CSV
files to ``benchmarks/results``.
"""
