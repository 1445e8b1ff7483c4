"""Trees for other libraries: scikit-learn, SHAP, treelite and ONNX."""

from sapwood.export.flat import ExportError, encode
from sapwood.export.onnx import to_onnx
from sapwood.export.scikit import to_sklearn
from sapwood.export.shap import to_shap
from sapwood.export.treelite import to_treelite

__all__ = ["ExportError", "encode", "to_onnx", "to_shap", "to_sklearn", "to_treelite"]
