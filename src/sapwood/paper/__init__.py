"""The paper's study: its data, its observers, its statistics and its figures, made by one command.

`sapwood paper` runs it. `sapwood.paper.protocol` gives the data to anyone who wants to try
something else on them; it needs nothing but NumPy.
"""
