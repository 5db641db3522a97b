"""The scikit-learn face: personalised models as estimators, in pipelines, cross-validation and searches.

estimators  PersonalizedClassifier and PersonalizedRegressor
fitting     one silo's model: alone at the ridge optimum, or personalised
rows        arrays and tables, labels, and whose rows they are -> silos, through the intake

scikit-learn is an extra: without it the names are there, and say what to install when they are called.
"""

from typing import TYPE_CHECKING, Any

__all__ = ["PersonalizedClassifier", "PersonalizedRegressor"]


def needs_scikit_learn(name: str) -> Any:
    """What stands for an estimator where scikit-learn is not installed."""

    def absent(*args: Any, **kwargs: Any) -> Any:
        raise ImportError(f"{name} needs scikit-learn: pip install 'confrere[sklearn]'")

    absent.__name__ = name
    absent.__doc__ = f"{name} needs scikit-learn, which is not installed: pip install 'confrere[sklearn]'."
    return absent


if TYPE_CHECKING:
    from confrere.estimator.estimators import PersonalizedClassifier, PersonalizedRegressor
else:
    try:
        from confrere.estimator.estimators import PersonalizedClassifier, PersonalizedRegressor
    except ModuleNotFoundError as problem:
        if (problem.name or "").split(".")[0] != "sklearn":
            raise
        PersonalizedClassifier, PersonalizedRegressor = map(needs_scikit_learn, __all__)
