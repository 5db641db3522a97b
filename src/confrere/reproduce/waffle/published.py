"""Table 1 of the WAFFLE paper, as shares. Its CIFAR-10 rows print shares with a per cent sign; they are shares."""

from collections.abc import Mapping

METHODS = ("local", "fedavg", "scaffold", "weight_erosion", "waffle", "apfl")

TABLE: Mapping[str, Mapping[str, tuple[float, ...]]] = {
    "mnist": {
        "A": (0.9688, 0.9899, 0.9903, 0.9901, 0.9893, 0.9755),
        "B": (0.9938, 0.9897, 0.9924, 0.9969, 0.9969, 0.9936),
        "C": (0.9854, 0.9856, 0.9877, 0.9900, 0.9900, 0.9845),
        "A*": (0.9656, 0.1337, 0.1993, 0.9809, 0.9799, 0.9624),
        "B*": (0.9947, 0.4526, 0.5751, 0.9967, 0.9963, 0.9944),
    },
    "cifar10": {
        "A": (0.771, 0.925, 0.927, 0.912, 0.907, 0.776),
        "B": (0.888, 0.884, 0.850, 0.935, 0.931, 0.895),
        "C": (0.832, 0.857, 0.868, 0.907, 0.914, 0.809),
        "A*": (0.763, 0.248, 0.259, 0.877, 0.900, 0.780),
        "B*": (0.876, 0.782, 0.476, 0.937, 0.926, 0.878),
    },
}


def published(data: str, distribution: str, method: str) -> float | None:
    """What the paper reports, or None: its models were LeNet-5 and DLA on all images, whatever is run here."""
    row = TABLE.get(data, {}).get(distribution)
    return None if row is None or method not in METHODS else row[METHODS.index(method)]
