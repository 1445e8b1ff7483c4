"""Sapwood compared with other learners, in one run on the same rows.

``python -m benchmarks.peers`` is the quick form, ``python -m benchmarks.peers --full`` the whole.
``--page FOLDER`` sets the folder of the results: every measurement in ``results.csv``, the page
``index.html``, and its tables as Markdown in ``benchmark.md``. A run that was stopped is resumed,
and a finished one is only written again; ``--fresh`` removes existing results.
"""
