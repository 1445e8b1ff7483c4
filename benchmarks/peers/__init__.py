"""Sapwood compared with other learners, in one run on the same rows.

``python -m benchmarks.peers`` is the quick form, ``python -m benchmarks.peers --full`` the whole.
``--page FOLDER`` says where the results go: every measurement in ``results.csv``, the page
``index.html``, and its tables as Markdown in ``benchmark.md``. A run that was stopped goes on where
it was, and a finished one is only written again; ``--fresh`` forgets what is there.
"""
