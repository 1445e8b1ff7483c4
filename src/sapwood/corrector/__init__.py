"""The error-correction layer: candidates blended around a prediction, and scored by their errors.

Kernels for any model: `_faded` (exponentially weighted sums of products, and the coefficients of
their ridge regression), `_evidence` (the weight of a delayed label), `_blend` (weights of
candidates), `_levels` and `_transfer` (the candidates of a single prediction), `_layer` (all of
them together), and `_pending` (the memory of pending predictions).
"""
