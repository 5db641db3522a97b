"""MNIST (handwritten digits) and Fashion-MNIST (pieces of clothing): 60,000 training and 10,000 test images, 28 x 28.

References: Y. LeCun, C. Cortes, C. Burges, The MNIST database (1998), CC BY-SA 3.0; H. Xiao, K. Rasul, R. Vollgraf,
Fashion-MNIST (2017), MIT licence.
"""

import functools

from confrere.data.idx import IdxFile, IdxSet, idx_arrays
from confrere.data.images import Images, image_silos
from confrere.data.silos import Silos
from confrere.data.source import Split

DIGITS = IdxSet(
    "mnist",
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    (
        IdxFile(
            "train-images-idx3-ubyte.gz",
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
            "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        ),
        IdxFile(
            "train-labels-idx1-ubyte.gz",
            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
            "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        ),
        IdxFile(
            "t10k-images-idx3-ubyte.gz",
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
            "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        ),
        IdxFile(
            "t10k-labels-idx1-ubyte.gz",
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
            "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        ),
    ),
)
CLOTHES = IdxSet(
    "fashion_mnist",
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    (
        IdxFile(
            "train-images-idx3-ubyte.gz",
            "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
            "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
        ),
        IdxFile(
            "train-labels-idx1-ubyte.gz",
            "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
            "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
        ),
        IdxFile(
            "t10k-images-idx3-ubyte.gz",
            "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
            "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
        ),
        IdxFile(
            "t10k-labels-idx1-ubyte.gz",
            "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
            "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
        ),
    ),
    installed=("/usr/share/datasets/fashion-mnist",),
    hint="or install Debian's package dataset-fashion-mnist, ",
)
CLOTHES_NAMES = (
    "T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot",
)  # fmt: skip


def mnist(distribution: str | Split = "A", agents: int = 10, rows: int = 6000, seed: int = 0) -> Silos:
    """Handwritten digits dealt out to agents with `rows` training images each; silo 0 is Alice.

    `distribution` is one of the WAFFLE paper: A (all agents alike), B (four classes each, others for every agent), C
    (five classes, one of them 40 %), or A*, B*, C*, where every agent but Alice has its labels permuted. Test rows
    follow each agent's own list: 996 for Alice with A, 1038 with B, 946 with C. Or it is a split (see
    `confrere.data.splits`) that deals agents x rows random images out to as many silos. Every training image is used at
    most once, and which ones is up to the seed. With all images (10 x 6000) some silos have a little fewer rows, since
    classes differ in size.

    Pixels are normalised with the mean .1307 and the deviation .3081 of the training images. The files are taken from
    CONFRERE_DATA/mnist, else downloaded; their sums are checked.

    >>> import confrere as cf
    >>> silos = cf.data.mnist(distribution="B*", agents=10, rows=200, seed=1)
    >>> silos.names[:2], silos.sizes("train")[:2], silos.sizes("test")[0], len(silos.feature_names)
    (('Alice', 'agent 1'), (200, 200), 1038, 784)
    """
    return image_silos(digits(), distribution, agents, rows, seed)


def fashion_mnist(distribution: str | Split = "A", agents: int = 10, rows: int = 6000, seed: int = 0) -> Silos:
    """Pictures of clothes in ten classes of equal size; the arguments are those of `mnist`.

    The files are taken from CONFRERE_DATA/fashion_mnist, else from where Debian's package dataset-fashion-mnist puts
    them, else downloaded; what they hold is checked. Normalised with the mean .2860 and the deviation .3530.
    """
    return image_silos(clothes(), distribution, agents, rows, seed)


@functools.cache
def digits() -> Images:
    """MNIST, read once."""
    return from_idx(DIGITS, "MNIST", 0.1307, 0.3081, tuple("0123456789"))


@functools.cache
def clothes() -> Images:
    """Fashion-MNIST, read once."""
    return from_idx(CLOTHES, "Fashion-MNIST", 0.2860, 0.3530, CLOTHES_NAMES)


def from_idx(files: IdxSet, title: str, mean: float, std: float, label_names: tuple[str, ...]) -> Images:
    """Grey images from four files."""
    train, train_y, test, test_y = idx_arrays(files)
    return Images(title, train[..., None], train_y, test[..., None], test_y, (mean,), (std,), label_names)
