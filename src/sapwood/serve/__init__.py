"""A model as an HTTP service: `sapwood serve`.

One writer owns the model. Every operation that changes it is appended to a write-ahead log, then
applied, then acknowledged; checkpoints keep the log short. Predictions are read from a replica of
the model, so that they are served while the model learns.
"""
