"""Networks: what they are made from, what is refused, and what their Laplacians tell."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sparse

import confrere as cf
from confrere.networks import Network
from confrere.networks.layout import in_precision, lay_out


def random_network(seed, n=12, p=0.4, weighted=True):
    rng = np.random.default_rng(seed)
    A = np.triu(rng.uniform(0.1, 2, (n, n)) * (rng.uniform(size=(n, n)) < p), 1)
    A = (A > 0) * 1.0 if not weighted else A
    return Network.from_adjacency(A + A.T), A + A.T


PATH = Network.from_edges([(0, 1), (1, 2), (2, 3)])
TRIANGLE = [[0, 1, 1], [1, 0, 1], [1, 1, 0]]


# from what


@pytest.mark.parametrize("made", [np.asarray, sparse.csr_array, sparse.coo_matrix])
def test_a_network_comes_from_a_dense_or_a_sparse_matrix(made):
    net, A = random_network(0)
    assert Network.from_adjacency(made(A)) == net
    np.testing.assert_array_equal(net.adjacency().toarray(), A)
    np.testing.assert_allclose(net.degrees, A.sum(axis=1))


def test_edges_may_come_in_any_order_and_in_both_directions():
    net = Network.from_edges([(2, 1), (0, 1), (1, 2)], weights=[2.0, 1.0, 2.0])
    assert net == Network.from_edges([(0, 1), (1, 2)], weights=[1.0, 2.0])
    assert hash(net) == hash(Network.from_edges([(0, 1), (1, 2)], weights=[1.0, 2.0]))
    assert net != PATH
    assert net.edges.tolist() == [[0, 1], [1, 2]]
    assert repr(net) == "Network(3 nodes, 2 edges)"


def test_an_edge_of_weight_zero_is_no_edge_and_nodes_may_be_isolated():
    net = Network.from_edges([(0, 1), (1, 2)], n=4, weights=[1.0, 0.0])
    assert net == Network.from_edges([(0, 1)], n=4)
    assert [c.tolist() for c in net.components()] == [[0, 1], [2], [3]]
    assert net.lambda_2() == 0
    assert net.degrees.tolist() == [1, 1, 0, 0]


def test_a_network_may_have_no_edge_at_all():
    for net in (Network.from_edges([], n=3), Network.from_adjacency(np.zeros((3, 3)))):
        assert (net.lambda_2(), net.lambda_n(), len(net.components())) == (0, 0, 3)
        assert net.laplacian().toarray().tolist() == [[0, 0, 0]] * 3
        np.testing.assert_array_equal(net.layout(np.float32).differences(jnp.ones((3, 2))), np.zeros((3, 2)))


def test_networkx_graphs_go_in_and_out():
    networkx = pytest.importorskip("networkx")
    graph = networkx.Graph()
    graph.add_node("alone")
    graph.add_edge("b", "a", weight=2.5)
    graph.add_edge("a", "c")
    net = Network.from_networkx(graph)
    assert net == Network.from_edges([(1, 2), (2, 3)], 4, [2.5, 1.0])
    assert Network.from_networkx(net.to_networkx()) == net
    L = networkx.laplacian_matrix(net.to_networkx(), nodelist=range(4)).toarray()
    np.testing.assert_allclose(net.laplacian().toarray(), L)
    for wrong in (networkx.DiGraph(), networkx.MultiGraph()):
        with pytest.raises(ValueError, match="undirected with one edge per pair"):
            Network.from_networkx(wrong)


@pytest.mark.parametrize(
    ("A", "said"),
    [
        ([[0, 1], [2, 0]], r"not symmetric: A\[0, 1\] = 1, but A\[1, 0\] = 2"),
        ([[0, 1], [0, 0]], r"not symmetric: A\[0, 1\] = 1, but A\[1, 0\] = 0"),
        ([[0, -1], [-1, 0]], r"edge \(0, 1\) has the weight -1: a weight must be 0 or more"),
        ([[0, np.nan], [np.nan, 0]], r"edge \(0, 1\) has the weight nan: a weight must be a finite number"),
        ([[0, np.inf], [np.inf, 0]], r"edge \(0, 1\) has the weight inf"),
        ([[0, 0], [0, 3]], r"edge \(1, 1\) has the weight 3: a node cannot be its own neighbour"),
        ([[0, 1, 0], [1, 0, 0]], "must be square"),
    ],
)
def test_matrices_that_are_no_networks_are_refused_with_the_pair(A, said):
    for matrix in (np.array(A, float), sparse.csr_array(np.array(A, float))):
        with pytest.raises(ValueError, match=said):
            Network.from_adjacency(matrix)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (([(0, 1), (1, 0)], None, [1.0, 2.0]), r"edge \(0, 1\) has two weights, 1 and 2"),
        (([(0, 3)], 3), r"edge \(0, 3\) leaves the network: its 3 nodes"),
        (([(-1, 0)], 3), r"edge \(-1, 0\) leaves"),
        (([(0, 1)], None, [1.0, 2.0]), "1 edges need as many weights"),
        (([(0, 1, 2)],), "pairs of nodes"),
        (([(0.5, 1)],), "pairs of node numbers"),
        (([("a", "b")],), "from_networkx takes named nodes"),
        (([(2, 2)],), "its own neighbour"),
        (([], None), "n must be a whole number above 0"),
    ],
)
def test_edges_that_are_no_edges_are_refused(arguments, said):
    with pytest.raises(ValueError, match=said):
        Network.from_edges(*arguments)


# by places


@pytest.mark.parametrize("k", [1, 3, 9])
def test_the_nearest_network_joins_nodes_of_which_one_is_among_the_nearest_of_the_other(k):
    points = np.random.default_rng(1).normal(size=(10, 2))
    gaps = np.linalg.norm(points[:, None] - points, axis=2)
    np.fill_diagonal(gaps, np.inf)
    near = np.zeros((10, 10))
    for i in range(10):
        near[i, np.argsort(gaps[i])[:k]] = 1
    assert Network.nearest(points, k) == Network.from_adjacency(np.maximum(near, near.T))


def test_the_radius_network_joins_nodes_within_reach_and_weighs_them_by_distance():
    points = np.array([0.0, 1.0, 2.5, 2.6])
    assert Network.radius(points, 1.5).edges.tolist() == [[0, 1], [1, 2], [2, 3]]
    net = Network.radius(points[:, None], 1.55, weight=lambda d: np.exp(-d))
    np.testing.assert_allclose(net.weights, np.exp([-1, -1.5, -0.1]))


def test_on_the_globe_the_date_line_does_not_divide():
    places = [(0.0, 179.5), (0.0, -179.5), (0.0, 170.0), (80.0, 0.0), (80.0, 180.0)]
    assert Network.nearest(places, 1, "great-circle").edges.tolist() == [[0, 1], [0, 2], [3, 4]]
    km = Network.radius(places[:2], 200, "great-circle", weight=lambda d: d).weights[0]
    np.testing.assert_allclose(km, 2 * np.pi * 6371 / 360)
    assert Network.radius(places[:2], km - 0.1, "great-circle").edges.size == 0
    np.testing.assert_allclose(
        Network.radius(places[3:], 1e5, "great-circle", weight=lambda d: d).weights, 20 * 2 * np.pi * 6371 / 360
    )


def test_places_that_coincide_are_neighbours_and_no_node_is_its_own():
    net = Network.nearest(np.zeros((5, 2)), 2)
    assert net.degrees.min() >= 2
    assert Network.radius(np.zeros((3, 2)), 0.0) == Network.from_adjacency(TRIANGLE)


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda: Network.nearest(np.zeros((3, 2)), 3), "cannot have 3 nearest"),
        (lambda: Network.nearest(np.zeros((3, 2)), 0), "k must be a whole number above 0"),
        (lambda: Network.nearest([[0.0], [np.nan]], 1), "coordinates of node 1 are not finite"),
        (lambda: Network.nearest([[0.0, 0.0], [91.0, 0.0]], 1, "great-circle"), "latitude"),
        (lambda: Network.nearest([[0.0], [1.0]], 1, "city-block"), "metric must be"),
        (lambda: Network.nearest(np.zeros((2, 2, 2)), 1), "one row per node"),
        (lambda: Network.radius([[0.0], [1.0]], -1.0), "radius must be"),
        (lambda: Network.radius([[0.0], [1.0]], 2.0, weight=lambda d: -d), r"edge \(0, 1\) has the weight -1"),
        (lambda: Network.erdos_renyi(3, 1.5), "p must be a share"),
    ],
)
def test_places_that_cannot_be_joined_are_refused(build, said):
    with pytest.raises(ValueError, match=said):
        build()


def test_the_weather_stations_are_joined_as_in_the_author_s_notebooks(shared_data):
    import polars as pl

    table = pl.read_csv(shared_data / "fmi_weather" / "FMI_data.csv")
    name = next(c for c in table.columns if "name" in c.lower() or "station" in c.lower())
    places = table.unique(name, keep="first", maintain_order=True).select(pl.col("^(?i)lat.*$"), pl.col("^(?i)lon.*$"))
    coordinates = places.to_numpy()
    assert len(coordinates) == 207
    assert [len(Network.nearest(coordinates, k).components()) for k in (1, 2, 3, 4, 5)] == [63, 14, 3, 1, 1]
    np.testing.assert_allclose(Network.nearest(coordinates, 4).lambda_2(), 0.0160292, atol=1e-7)


# random networks


def test_random_networks_have_the_degrees_of_their_probability():
    net = Network.erdos_renyi(300, 0.1, seed=4)
    assert abs(net.degrees.mean() - 29.9) < 1
    assert Network.erdos_renyi(300, 0.1, seed=4) == net
    assert Network.erdos_renyi(300, 0.1, seed=5) != net
    assert Network.erdos_renyi(6, 1.0) == Network.from_adjacency(1 - np.eye(6))
    assert Network.erdos_renyi(6, 0.0) == Network.from_edges([], 6)
    assert Network.erdos_renyi(1, 0.5).n == 1


def test_dense_random_networks_are_about_as_connected_as_their_mean_degree():
    found = [Network.erdos_renyi(600, 0.5, seed).lambda_2() for seed in range(3)]
    assert (np.abs(np.array(found) / (600 * 0.5) - 1) < 0.2).all()  # (7.2), which is an approximation


def test_all_pairs_are_equally_likely():
    counts = sum(Network.erdos_renyi(5, 0.5, seed).adjacency().toarray() for seed in range(400))
    off = counts[~np.eye(5, dtype=bool)]
    assert off.min() > 160
    assert off.max() < 240


# spectra


@pytest.mark.parametrize("seed", range(5))
def test_eigenvalues_are_those_of_the_dense_laplacian(seed):
    net, A = random_network(seed, p=0.6)
    values = np.linalg.eigvalsh(np.diag(A.sum(axis=1)) - A)
    np.testing.assert_allclose([net.lambda_2(), net.lambda_n()], values[[1, -1]], atol=1e-10)
    np.testing.assert_allclose(np.linalg.eigvalsh(net.laplacian()), values, atol=1e-10)  # numpy takes it as it is


def path(n):
    return Network.from_edges([(i, i + 1) for i in range(n - 1)])


def test_extreme_eigenvalues_of_a_long_path_whose_upper_end_is_crowded_are_the_known_ones():
    n = 20_001  # minutes by Lanczos alone
    np.testing.assert_allclose(path(n).lambda_n(), 2 + 2 * np.cos(np.pi / n), rtol=1e-9)
    np.testing.assert_allclose(path(n).lambda_2(), 2 - 2 * np.cos(np.pi / n), rtol=1e-7)


def test_the_largest_eigenvalue_of_a_grid_is_the_known_one():
    k = np.arange(10_000).reshape(100, 100)
    across, along = np.c_[k[:, :-1].ravel(), k[:, 1:].ravel()], np.c_[k[:-1].ravel(), k[1:].ravel()]
    grid = Network.from_edges(np.concatenate([across, along]))
    np.testing.assert_allclose(grid.lambda_n(), 4 + 4 * np.cos(np.pi / 100), rtol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_the_largest_eigenvalue_of_a_weighted_path_is_that_of_its_dense_matrix(seed):
    weights = np.random.default_rng(seed).uniform(0.999, 1, 899)
    net = Network.from_edges(path(900).edges, weights=weights)
    values = np.linalg.eigvalsh(net.laplacian())
    np.testing.assert_allclose([net.lambda_2(), net.lambda_n()], values[[1, -1]], rtol=1e-8)


def test_sparse_solvers_agree_with_dense_ones_on_large_networks():
    ring = Network.from_edges([(i, (i + 1) % 900) for i in range(900)])
    np.testing.assert_allclose(ring.lambda_2(), 2 - 2 * np.cos(2 * np.pi / 900), rtol=1e-6)
    np.testing.assert_allclose(ring.lambda_n(), 4, rtol=1e-6)
    net = Network.nearest(np.random.default_rng(0).random((600, 2)), 8)
    values = np.linalg.eigvalsh(net.laplacian())
    np.testing.assert_allclose([net.lambda_2(), net.lambda_n()], values[[1, -1]], rtol=1e-8)


@pytest.mark.parametrize("seed", range(4))
def test_the_kernel_of_the_laplacian_has_one_dimension_per_component(seed):
    net, _ = random_network(seed, p=0.12)
    values = np.linalg.eigvalsh(net.laplacian())
    assert (values < 1e-9).sum() == len(net.components())
    assert net.connected == (net.lambda_2() > 0)


def test_one_node_has_no_second_eigenvalue():
    with pytest.raises(ValueError, match="one node"):
        Network.from_edges([], 1).lambda_2()


# clusters


def test_induced_networks_keep_the_edges_inside_and_the_boundary_weighs_those_that_leave():
    net, A = random_network(3)
    nodes = [7, 2, 5, 9]
    assert net.induced(nodes) == Network.from_adjacency(A[np.ix_(nodes, nodes)])
    rest = np.setdiff1d(np.arange(12), nodes)
    np.testing.assert_allclose(net.boundary(nodes), A[np.ix_(nodes, rest)].sum())
    np.testing.assert_allclose([net.boundary([i]) for i in range(12)], net.degrees)
    assert net.boundary(range(12)) == 0


@pytest.mark.parametrize("nodes", [[], [0, 0], [4], [-1]])
def test_clusters_that_are_none_are_refused(nodes):
    with pytest.raises(ValueError, match="a cluster needs different nodes, each of 0 to 3"):
        PATH.induced(nodes)


# products


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_products_are_those_of_the_dense_laplacian(seed, weighted):
    net, A = random_network(seed, n=7, weighted=weighted)
    W = np.random.default_rng(seed).normal(size=(7, 3)).astype(np.float32)
    layout = net.layout(np.float32)
    np.testing.assert_allclose(layout.differences(jnp.asarray(W)), net.laplacian() @ W, atol=2e-5)
    np.testing.assert_allclose(layout.sums(jnp.asarray(W)), A @ W, atol=2e-5)
    assert not np.asarray(layout.differences(jnp.full((7, 3), 0.1, jnp.float32))).any()  # exactly: no rounding is left


@pytest.mark.parametrize("weights", [None, np.linspace(0.5, 2, 60)])
def test_a_hub_does_not_make_everybody_carry_its_neighbours(weights):
    star = Network.from_edges([(0, i) for i in range(1, 61)], weights=weights)
    layout = in_precision(lay_out(star.adjacency()), np.float32)
    assert layout.neighbour.shape == (8, 61)
    assert layout.receiver.shape == (52,)
    W = np.random.default_rng(0).normal(size=(61, 2)).astype(np.float32)
    np.testing.assert_allclose(layout.differences(jnp.asarray(W)), star.laplacian() @ W, atol=1e-4)


def test_the_identity_of_total_variation(x64):
    net, A = random_network(1)
    W = np.random.default_rng(0).normal(size=(12, 3))
    by_edges = sum(A[i, j] * ((W[i] - W[j]) ** 2).sum() for i in range(12) for j in range(i))
    np.testing.assert_allclose((W * np.asarray(net.layout(np.float64).differences(jnp.asarray(W)))).sum(), by_edges)


def test_networks_is_a_part_of_the_library():
    assert cf.networks.Network is Network
