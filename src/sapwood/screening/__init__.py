"""Models of many features, of which few matter: those with evidence are used."""

from sapwood.screening.regressor import ScreenedRegressor

__all__ = ["ScreenedRegressor"]
