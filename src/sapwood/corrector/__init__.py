"""The last layer: candidates blended around a prediction, judged by what they said.

Kernels for any model: `_faded` (sums of products that fade, and what they say), `_evidence` (what a
label is worth that comes late), `_blend` (weights of candidates), `_levels` and `_transfer` (the
candidates of a single prediction), `_layer` (all of them together), and `_notes` (the memory of
what was said about rows whose labels are yet to come).
"""
