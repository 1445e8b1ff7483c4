"""Stages: what is put around a model and is itself a model, in any order that makes sense."""

from sapwood.stages.protocol import EncodedBatch, Prediction
from sapwood.stages.stage import Stage, offered, passed_on

__all__ = ["EncodedBatch", "Prediction", "Stage", "offered", "passed_on"]
