"""Lags and rolling means as features, of one series or many, in front of any model."""

from sapwood.lags.lags import Lags, Ticket
from sapwood.lags.model import LaggedModel
from sapwood.lags.naive_stack import NaiveStack

__all__ = ["LaggedModel", "Lags", "NaiveStack", "Ticket"]
