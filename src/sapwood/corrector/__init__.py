"""The error-correction layer: candidates weighted around a prediction by their errors.

Kernels for any model: `_faded` (exponentially weighted sums of products, and the coefficients of
their ridge regression), `_evidence` (the weight of a delayed label), `_blend` (weights of
candidates), `_levels` and `_transfer` (the candidates of a single prediction), `_layer` (all of
them together), and `_pending` (the memory of pending predictions).
"""
