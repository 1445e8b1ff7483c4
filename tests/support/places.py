"""Where the files of the repository are, for tests in any folder."""

from pathlib import Path

SUPPORT = Path(__file__).parent
ROOT = SUPPORT.parents[1]
DATA = ROOT / "tests" / "data"
