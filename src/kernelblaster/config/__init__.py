"""The one configuration object: its fields (`schema`), where their values come from (`sources`), and what they mean.

The text below a field in `schema.py` documents it, and nothing else does: help texts and docs/configuration.md take it
from there.
"""

from kernelblaster.config.schema import AUTOMATIC as AUTOMATIC
from kernelblaster.config.schema import DATASET as DATASET
from kernelblaster.config.schema import GIVEN as GIVEN
from kernelblaster.config.schema import BudgetConfig as BudgetConfig
from kernelblaster.config.schema import EvaluationConfig as EvaluationConfig
from kernelblaster.config.schema import ModelConfig as ModelConfig
from kernelblaster.config.schema import ModelKind as ModelKind
from kernelblaster.config.schema import RunConfig as RunConfig
from kernelblaster.config.schema import SearchConfig as SearchConfig
from kernelblaster.config.schema import SearchPart as SearchPart
from kernelblaster.config.training import TrainConfig as TrainConfig
