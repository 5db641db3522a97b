"""Bad tables: each is refused with a message that names the silo, the column and the row, or has a defined meaning."""

import datetime
import time

import numpy as np
import pandas as pd
import polars as pl
import pytest

import confrere as cf
from confrere.data import DataWarning
from confrere.data.intake.read import read


def table(**columns):
    """Two silos of two rows; columns can be replaced, or left out with None."""
    whole = {"x": [1.0, 2.0, 3.0, 5.0], "k": ["p", "q", "q", "q"], "y": [0, 1, 0, 1], "s": [*"aabb"]} | columns
    return pl.DataFrame({name: values for name, values in whole.items() if values is not None}, strict=False)


def load(given, **options):
    return cf.Silos.from_table(given, **({"label": "y", "silo": "s"} | options))


def folder_of(place, **files):
    """A folder with one CSV file per silo."""
    for name, text in files.items():
        (place / f"{name}.csv").write_text(text.replace(" ", "\n") + "\n", encoding="utf-8")
    return place


def refused(given, message, error=ValueError, **options):
    with pytest.raises(error, match=message):
        load(given, **options)


# Columns


def test_the_label_must_be_there():
    refused(table(y=None), "the table has no label column 'y'; there is 'x', 'k', 's'")
    refused(table(), "no label column 'yy'; did you mean 'y'|there is", label="yy")


def test_the_label_must_be_there_in_every_file(tmp_path):
    place = folder_of(tmp_path, a="x,y 1,0 2,1", b="x,Y 1,0 2,1")
    with pytest.raises(ValueError, match="silo 'b' has no label column 'y'"):
        cf.Silos.from_folder(place, label="y")


def test_the_column_of_silos_must_be_there_and_full_and_not_be_the_label():
    refused(table(), "the table has no silo column 'site'", silo="site")
    refused(table(s=["a", None, "b", "b"]), r"1 row\(s\) have no value in the silo column 's', the first is row 1")
    refused(table(), "'y' cannot be both the label and the column of silos", silo="y")


def test_without_a_column_of_silos_all_rows_are_one():
    assert load(table(s=None), silo=None).names == ("all",)


@pytest.mark.parametrize(
    "twice",
    [
        pd.DataFrame([[1, 2, 0, "a"]], columns=["x", "x", "y", "s"]),
        pl.DataFrame({"x": [1], " x": [2], "y": [0], "s": ["a"]}),
        pl.DataFrame({"x": [1], "z": [2], "y": [0], "s": ["a"]}).to_arrow().rename_columns(["x", "x", "y", "s"]),
    ],
    ids=["pandas", "polars", "pyarrow"],
)
def test_column_names_must_differ(twice):
    refused(twice, "the table has more than one column called 'x': rename all but one")


def test_column_names_must_differ_in_a_file(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,x,y,s\n1,2,0,a\n")
    refused(path, r"t\.csv has more than one column called 'x'")


@pytest.mark.parametrize("option", ["drop", "categorical", "numeric", "missing"])
def test_options_name_columns_that_are_there(option):
    named = {"age": [0]} if option == "missing" else ["age"]
    refused(table(), f"{option} names the column 'age', which no silo has", **{option: named})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scale": "own"}, "scale must be 'shared', 'silo' or None, not 'own'"),
        ({"task": "ranking"}, "task must be 'classification', 'regression' or None"),
        ({"min_level": 0}, "min_level must be a whole number above 0"),
        ({"numeric": "x", "categorical": "x"}, "'x' is named both in categorical and in numeric"),
        ({"drop": "y"}, "'y' is the label, so it cannot be named in drop"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, message):
    refused(table(), message, **options)


def test_a_column_may_be_called_like_anything():
    silos = load(table(count=["u", "v", "v", "v"], level=[1, 2, 1, 3]))
    assert silos.feature_names == ("x", "k=q", "count=v", "level")


def test_features_that_would_be_called_the_same_are_refused():
    given = table(k=["p", "q", "r", "r"]).with_columns(pl.Series("k=q", [1.0, 2.0, 1.0, 4.0]))
    refused(given, "two features would be called 'k=q': rename a column")


def test_no_feature_at_all_is_refused():
    refused(table(k=None), "no feature is left", drop=["x"])


def test_columns_of_lists_are_refused():
    refused(table(k=[[1], [2], [3], [4]]), r"silo 'a', column 'k' holds List.*drop=", TypeError)


def test_what_is_no_table_is_refused():
    refused([1, 2, 3], "a table is a pandas, polars or pyarrow table, or the path", TypeError)


def test_column_names_in_several_levels_are_refused_and_the_advice_helps():
    given = pd.DataFrame(table().to_dict(as_series=False))
    given.columns = pd.MultiIndex.from_product([["first"], given.columns])
    refused(given, r"the table's columns have names in 2 levels \(a MultiIndex\): join them to one name each")
    given.columns = ["_".join(map(str, names)) for names in given.columns]
    assert load(given, label="first_y", silo="first_s").feature_names == ("first_x", "first_k=q")


def test_column_names_in_one_level_are_refused_and_the_advice_helps():
    given = pd.DataFrame(table().to_dict(as_series=False))
    given.columns = pd.MultiIndex.from_tuples([(name,) for name in given.columns])
    refused(given, r"the table's columns have names in 1 level \(a MultiIndex\): join them to one name each")
    given.columns = ["_".join(map(str, names)) for names in given.columns]
    assert load(given).feature_names == ("x", "k=q")


@pytest.mark.parametrize("option", ["label", "silo"])
def test_a_column_is_given_by_its_name(option):
    refused(table(), f"{option} must be the name of a column, not 3: write '3'", TypeError, **{option: 3})
    for wrong in (("x",), ["x"], 0.5, True):
        refused(table(), f"{option} must be the name of a column, not ", TypeError, **{option: wrong})
    given = pd.DataFrame([[1.0, 0, "a"], [2.0, 1, "a"], [4.0, 1, "b"]])
    assert load(given, label="1", silo="2").feature_names == ("0",)


@pytest.mark.parametrize("option", ["drop", "categorical", "numeric"])
def test_several_columns_are_given_by_their_names(option):
    for wrong in (3, None):
        refused(table(), f"{option} must be the name of a column or a list of names", TypeError, **{option: wrong})
    refused(table(), f"{option} must be .*, not 3: write '3'", TypeError, **{option: 3})


def test_missing_values_are_given_by_column():
    for wrong in (3, ["x"], "x"):
        refused(table(), "missing must give values by column, as in {'chol': \\[0\\]}", TypeError, missing=wrong)


# Labels


def test_a_label_with_one_class_is_refused():
    refused(table(y=[1, 1, 1, 1]), "the label 'y' has only one class, '1'")
    refused(table(y=[0.5] * 4), "the label 'y' has only one value, 0.5")


def test_a_silo_with_one_class_is_accepted():
    assert load(table(y=[0, 0, 0, 1]))["a"].y.tolist() == [0, 0]


def test_rows_without_a_label_are_left_out_with_a_warning():
    with pytest.warns(DataWarning, match=r"^silo 'b': some rows without a label are left out$"):
        silos = load(table(k=None, y=[0, 1, None, 1]))
    assert silos.sizes() == (2, 1)
    assert silos.notes[0].startswith("silo 'b'")


def test_a_silo_without_labels_is_refused():
    refused(table(y=[0, 1, None, None]), "silo 'b' has no row with a label: leave it out")


def test_labels_are_words_or_numbers_in_all_silos():
    refused(table(y=["0", "1", "no", "yes"]), "label 'y' is text in silo 'b', but numbers in silo 'a'")


def test_a_label_of_names_is_refused():
    many = pl.DataFrame({"x": range(60), "y": [f"patient {i}" for i in range(60)], "s": ["a"] * 60})
    refused(many, "silo 'a': the label 'y' has 60 values in 60 rows, too many for classes")


def test_a_numeric_label_with_a_word_is_refused_by_cell():
    refused(table(y=["1", "2", "3", "lots"]), "silo 'b', column 'y', row 3 .*'lots' is no number", task="regression")


def test_dates_are_no_label():
    dates = pl.Series(["2020-01-01", "2020-01-02", "2020-01-03", "2020-01-04"])
    refused(table(y=dates.str.to_date()), "column 'y' holds dates, which cannot be a label")


# Cells


@pytest.mark.parametrize("value", [np.inf, -np.inf])
@pytest.mark.parametrize("column", ["x", "y"])
def test_infinite_values_are_refused_by_silo_column_and_row(value, column):
    refused(table(**{column: [1.5, 2.0, 3.0, value]}), rf"silo 'b', column '{column}', row 3 .*: -?inf is not finite")


def test_nan_is_a_missing_value():
    assert load(table(x=[1.0, float("nan"), 3.0, 5.0])).feature_names[:2] == ("x", "x=missing")


def test_numbers_too_large_to_square_are_refused():
    refused(table(x=[1e200, 2.0, -1e200, 5.0]), "silo 'a', column 'x': the numbers are too large to be added up")
    refused(table(x=[1e200, 1e200, 2e200, 2e200]), "column 'x': the numbers are too large to be added up")


def test_a_few_words_among_numbers_are_refused_by_cell(tmp_path):
    good = "".join(f" {i},{i % 2}" for i in range(9))
    place = folder_of(tmp_path, a="x,y" + good + " <5,1", b="x,y" + good)
    message = r"silo 'a', column 'x', row 9 .*: '<5' is no number.*1 cell.*missing=\{'x': \['<5'\]\}"
    with pytest.raises(ValueError, match=message):
        cf.Silos.from_folder(place, label="y")
    silos = cf.Silos.from_folder(place, label="y", missing={"x": ["<5"]})
    assert silos.feature_names == ("x", "x=missing")
    assert "x=<5" in cf.Silos.from_folder(place, label="y", categorical="x").feature_names


def test_decimal_commas_are_named():
    refused(
        table(x=["1,5", "2,5", "3,0", "4,5"]), r"'1,5' is no number: write it with a point, not with a comma; 2 cell"
    )


def test_mixed_python_values_of_pandas_are_text():
    mixed = pd.DataFrame({"x": [1, "2", None, "many", 2], "y": [0, 1, 0, 1, 1], "s": ["a"] * 5})
    assert load(mixed).feature_names == ("x=1", "x=2", "x=many", "x=missing")


def test_a_column_must_hold_the_same_in_all_silos(tmp_path):
    place = folder_of(tmp_path, a="x,y 1,0 2,1", b="x,y low,0 high,1")
    message = "column 'x' is numeric in silo 'a', but categorical in silo 'b': record it alike"
    with pytest.raises(ValueError, match=message):
        cf.Silos.from_folder(place, label="y")
    assert len(cf.Silos.from_folder(place, label="y", categorical=["x"]).feature_names) == 4


# Files


def test_a_file_that_is_not_there():
    refused("nowhere/t.csv", "there is no file nowhere/t.csv", FileNotFoundError)


def test_a_folder_is_no_file(tmp_path):
    refused(tmp_path, "is a folder: use Silos.from_folder", IsADirectoryError)


@pytest.mark.parametrize("text", ["", "\n \n", "x,y,s\n"], ids=["nothing", "blank", "header"])
def test_empty_files_are_refused(tmp_path, text):
    path = tmp_path / "t.csv"
    path.write_text(text)
    refused(path, r"t\.csv (is empty|has no rows)")


def test_empty_tables_are_refused():
    refused(table().clear(), "the table has no rows")


def test_other_endings_are_refused(tmp_path):
    path = tmp_path / "t.xlsx"
    path.write_bytes(b"PK")
    refused(path, r"t\.xlsx: files end in \.csv, \.parquet, \.pq, \.tsv, not in '\.xlsx'")


def test_other_encodings_are_refused_by_line(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("x,y,s\n1,0,a\n2,1,Zürich\n".encode("latin-1"))
    refused(path, r"t\.csv is not in UTF-8 \(see line 3\)")


def test_ragged_rows_are_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,y,s\n1,0,a\n2,1,b,9,9\n")
    refused(path, r"t\.csv, line 3: 5 fields, but the header has 3: are all rows of the same length\?")
    path.write_text(f"x,y,s\n{'1' * 200_000},0,a,b\n")  # of so large a field only that much is said
    refused(path, r"t\.csv could not be read as a table, are all rows of the same length\?")


def test_lines_that_end_too_early_are_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('x,y,s\n1,0,"a\nb"\n2,1\n3,1,b\n')
    refused(path, r"t\.csv, line 4: 2 fields, but the header has 3.*needs its separator")
    path.write_text("s,y,x\na,0,1\na,1,2\n\nb,0,\nb,1,5\n\n")  # blank lines, and a gap with its separator
    assert read(path).height == 6


def test_a_broken_parquet_file_is_refused(tmp_path):
    path = tmp_path / "t.parquet"
    path.write_bytes(b"not parquet at all")
    refused(path, r"t\.parquet could not be read as a Parquet file")


def test_folders_need_files_that_are_tables(tmp_path):
    with pytest.raises(NotADirectoryError, match="there is no folder"):
        cf.Silos.from_folder(tmp_path / "nowhere", label="y")
    with pytest.raises(ValueError, match=r"has no file that ends in \.csv"):
        cf.Silos.from_folder(tmp_path, label="y")
    (tmp_path / ".a.csv").write_text("x,y\n1,0\n")
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(ValueError, match=r"has no file that ends in .*; there is notes\.txt"):
        cf.Silos.from_folder(tmp_path, label="y")


def test_an_empty_file_in_a_folder_is_named(tmp_path):
    place = folder_of(tmp_path, a="x,y 1,0 2,1")
    (place / "b.csv").touch()
    with pytest.raises(ValueError, match=r"b\.csv is empty"):
        cf.Silos.from_folder(place, label="y")


def test_two_files_of_one_silo_are_refused(tmp_path):
    place = folder_of(tmp_path, a="x,y 1,0 2,1")
    pl.DataFrame({"x": [1], "y": [0]}).write_parquet(place / "a.parquet")
    with pytest.raises(ValueError, match="silo names must differ, but a occurs more than once"):
        cf.Silos.from_folder(place, label="y")


# Sizes


def test_a_silo_with_one_row_is_a_silo():
    more = pl.concat([table(s=[*"aaaa"]), table(s=[*"aaab"])])
    silos = load(more)
    assert silos.sizes() == (7, 1)
    assert np.isfinite(silos["b"].X).all()
    halves = silos.halve()
    assert halves.sizes("train") == (3, 0)
    assert all(np.isfinite(s.X).all() for s in halves.silos)


def test_a_single_training_row_leaves_no_feature_which_is_said():
    with pytest.raises(ValueError, match="no feature is left: every column is constant in the training rows"):
        load(table(s=[*"aaab"])).halve()


def test_a_silo_without_training_rows_has_no_scale_of_its_own():
    with pytest.warns(DataWarning, match="scale='silo'"):
        silos = load(table(s=[*"aaab"]), scale="silo")
    later = silos.with_parts([np.array([0, 0, 0]), np.array([2])])
    assert later["b"].X[0, 0] == 0


def test_no_training_row_at_all_is_refused():
    with pytest.raises(ValueError, match="no silo has a training row"):
        load(table()).with_parts([np.array([2, 2]), np.array([2, 2])])


def test_a_silo_with_nothing_but_labels_is_filled(tmp_path):
    place = folder_of(tmp_path, a="x,y 1,0 2,1 3,0 4,1", b="y 0 1")
    silos = cf.Silos.from_folder(place, label="y")
    np.testing.assert_array_equal(silos["b"].X, [[0, 1], [0, 1]])
    assert silos.split(seed=1).feature_names == ("x", "x=missing")
    assert len(silos.source.pool().columns["x"]) == 6


@pytest.mark.slow
def test_ten_thousand_columns_are_taken():
    rng = np.random.default_rng(0)
    wide = pl.DataFrame(rng.normal(size=(60, 10_000))).with_columns(y=pl.Series([0, 1] * 30), s=pl.Series([*"ab"] * 30))
    start = time.perf_counter()
    silos = load(wide)
    print(f"{time.perf_counter() - start:.1f} s")
    assert len(silos.feature_names) == 10_000
    assert time.perf_counter() - start < 60
    X = np.concatenate([s.X for s in silos.silos])
    np.testing.assert_allclose(X.mean(0), 0, atol=1e-12)
    np.testing.assert_allclose(X.std(0), 1, atol=1e-12)


@pytest.mark.slow
def test_a_million_rows_are_taken(tmp_path):
    rng = np.random.default_rng(0)
    rows = 1_000_000
    tall = pl.DataFrame(
        {
            "x": rng.normal(size=rows),
            "z": rng.integers(0, 100, rows),
            "k": rng.choice(["p", "q", "r"], rows),
            "y": rng.integers(0, 2, rows),
            "s": rng.choice(["a", "b", "c"], rows),
        }
    )
    tall.write_csv(tmp_path / "tall.csv")
    start = time.perf_counter()
    silos = load(tmp_path / "tall.csv")
    print(f"{time.perf_counter() - start:.1f} s")
    assert sum(silos.sizes()) == rows
    assert time.perf_counter() - start < 60


# Text files

LINES = ("x,k,y,s", "1,p,0,a", "2,q,1,a", "3,q,0,b", "5,q,1,b", "")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["unix", "windows", "old mac"])
def test_lines_may_end_in_any_way(tmp_path, end):
    path = tmp_path / "t.csv"
    path.write_bytes(end.join(LINES).encode())
    assert [s.X.tolist() for s in load(path).silos] == [s.X.tolist() for s in load(table()).silos]


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["unix", "windows"])
def test_the_last_of_lines_that_end_in_a_carriage_return_may_end_otherwise(tmp_path, end):
    path = tmp_path / "t.csv"
    path.write_bytes(("\r".join(LINES[:-1]) + end).encode())
    assert [s.X.tolist() for s in load(path).silos] == [s.X.tolist() for s in load(table()).silos]


def test_quoted_cells_keep_their_line_ends_whatever_ends_the_lines(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b'x,k,y,s\r1,"p\nr",0,a\r2,"q\rt",1,a\r3,"q\rt",0,b\r5,"q\rt",1,b')
    assert load(path).feature_names == ("x", "k=q\rt")
    path.write_bytes(b'x,k,y,s\n1,"p\nr",0,a\n2,"q\rt",1,a\n3,"q\rt",0,b\n5,"q\rt",1,b')
    assert load(path).feature_names == ("x", "k=q\rt")


def test_a_carriage_return_in_the_header_of_other_lines_is_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("\n".join(LINES).replace("x,k", "x\rz,k", 1).encode())
    refused(path, r"t\.csv: the header is not readable .*: save the file anew as CSV")


@pytest.mark.parametrize("name", ["a,b,c,d,e,f", 'a ""quoted, b, c, d, e"" word', "a,b,c,\nd,e,f"])
def test_separators_in_quoted_names_do_not_count(tmp_path, name):
    path = tmp_path / "t.csv"
    path.write_text(f'"{name}";"k,2";y;s\n1;p;0;a\n2;q;1;a\n3;q;0;b\n5;q;1;b\n', encoding="utf-8")
    assert load(path).feature_names == (name.replace('""', '"'), "k,2=q")


def test_a_blank_before_a_quoted_name_does_not_mislead(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('s; y; "age, in, or, so"\na;0;1\na;1;2\nb;0;3\nb;1;5\n', encoding="utf-8")
    assert load(path).feature_names == ("age, in, or, so",)
    path.write_text('s, y, "age, in years"\na,0,1\na,1,2\nb,0,3\nb,1,5\n', encoding="utf-8")
    refused(path, r"t\.csv: a quoted name in the header holds the separator and has a blank before it: remove it")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("x,height 5'9\",y,s\n1,2,0,a\n2,3,1,b\n", 1),
        ('x,"k,y,s\n1,p,0,a\n2,q,1,b\n', 1),
        ('x,k,y,s\n1,"p\n2",0,a\n2,"q,1,b\n3,"p",0,b\n', 4),
        ("x,k,y,s\n1,5'9\",0,a\n2,5'8\",1,b\n", 2),
        ('x,"k,y,s\n' + "1,p,0,a\n" * 30_000, 1),
    ],
    ids=["inside a name", "name", "cell", "inside a cell", "large file"],
)
def test_a_quotation_mark_that_is_not_closed_is_named_by_its_line(tmp_path, text, line):
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8")
    refused(path, rf"t\.csv, line {line}: a field has a quotation mark that is not closed")


# Dates and durations

DAYS = [datetime.date(2020, 1, day) for day in (1, 2, 5, 9)]
STAYS = [datetime.timedelta(days=1), datetime.timedelta(days=2, hours=12), None, datetime.timedelta(days=4)]


@pytest.mark.parametrize("library", ["polars", "pandas", "pyarrow"])
def test_durations_are_numbers_of_days_and_it_is_noted(library):
    given = table(stay=STAYS)
    given = {"polars": given, "pandas": pd.DataFrame(given.to_dict(as_series=False)), "pyarrow": given.to_arrow()}[
        library
    ]
    silos, plain = load(given, scale=None), load(table(stay=[1, 2.5, None, 4]), scale=None)
    assert silos.feature_names == plain.feature_names == ("x", "k=q", "stay", "stay=missing")
    assert [s.X.tolist() for s in silos.silos] == [s.X.tolist() for s in plain.silos]
    assert "column 'stay' holds durations, taken as days" in silos.notes


def test_a_duration_may_be_the_label():
    silos = load(table(y=[datetime.timedelta(hours=h) for h in (6, 12, 18, 36)]))
    assert [s.y.tolist() for s in silos.silos] == [[0.25, 0.5], [0.75, 1.5]]


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_durations_may_have_values_that_mean_missing_in_days(library):
    given = table(stay=[datetime.timedelta(0), *STAYS[:2], datetime.timedelta(days=4)])
    given = given if library == "polars" else pd.DataFrame(given.to_dict(as_series=False))
    silos = load(given, scale=None, missing={"stay": [0, 2.5]})
    assert np.concatenate([s.X for s in silos.silos])[:, 2:].tolist() == [[2.5, 1], [1, 0], [2.5, 1], [4, 0]]
    assert [note for note in silos.notes if "taken as missing" in note] == [
        f"silo {name!r}: stay = 0 or stay = 2.5 is taken as missing (in some rows)" for name in "ab"
    ]


@pytest.mark.parametrize(
    "values", [[[1], [2], [3], [4]], [b"u", b"v", b"v", b"\xff"], STAYS], ids=["list", "bytes", "stay"]
)
def test_what_means_missing_in_a_dropped_column_does_not_matter(values):
    silos = load(table(z=values), missing={"z": [0]}, drop=["z"])
    assert silos.feature_names == ("x", "k=q")
    assert not [note for note in silos.notes if "missing" in note]


def test_a_silo_column_of_durations_is_in_days_and_one_of_lists_is_refused():
    stays = [datetime.timedelta(days=2, hours=12)] * 2 + [datetime.timedelta(days=30)] * 2
    assert load(table(s=stays)).names == ("2.5", "30")
    refused(table(s=[[1], [1], [2], [2]]), r"the silo column 's' holds List\(Int64\), not names or numbers", TypeError)
    refused(table(s=[b"a", b"a", b"\xff", b"\xff"]), "the silo column 's' holds Binary", TypeError)


@pytest.mark.parametrize("written", ["dates", "times", "text"])
def test_a_date_is_no_number(written):
    given = {"dates": DAYS, "times": [datetime.datetime(d.year, 1, d.day) for d in DAYS], "text": list(map(str, DAYS))}
    message = "silo 'a', column 'day'.* no numbers?: derive one, such as an age or the days since an event"
    refused(table(day=given[written]), message, numeric="day")
    refused(pd.DataFrame(table(day=given[written]).to_dict(as_series=False)), message, numeric="day")


def test_dates_are_no_label_of_a_regression():
    refused(table(y=DAYS), "column 'y' holds dates, which cannot be a label", task="regression")


# Names that polars would take for patterns


def test_names_that_look_like_patterns_are_names_and_change_no_number():
    odd = {"x": "^x$", "k": "^.*$", "y": "*", "s": "^s"}
    plain, strange = load(table()), load(table().rename(odd), label="*", silo="^s")
    assert strange.feature_names == ("^x$", "^.*$=q")
    assert not [note for note in load(table().rename({"x": "*", "k": "^.*$"})).notes if "look like one" in note]
    one, two = plain.split(seed=1), strange.split(seed=1)
    assert [s.X.tolist() for s in two.silos] == [s.X.tolist() for s in one.silos]
    assert [s.y.tolist() for s in two.silos] == [s.y.tolist() for s in one.silos]
    rows = table().rename(odd)
    np.testing.assert_array_equal(two.encoding.transform(rows), one.encoding.transform(table()))
    assert strange.divide(cf.data.splits.iid(2)).feature_names == strange.feature_names


def test_options_take_names_that_look_like_patterns_for_names():
    given = table(k2=["u", "v", "v", "v"]).rename({"k": "^k.*$"})
    assert load(given, drop="^k.*$").feature_names == ("x", "k2=v")
    assert load(table(x=["1", "2", "9", "5"]).rename({"x": "^x$"}), missing={"^x$": [9]}).feature_names == (
        "^x$",
        "^x$=missing",
        "k=q",
    )
    refused(table().rename({"k": "^k$"}), r"column '\^k\$', row 0 .* 'p' is no number", numeric="^k$")


# Decimal commas


@pytest.mark.parametrize("separator", ["; ", "\t", "|"])
def test_decimal_commas_are_read_where_commas_separate_nothing(tmp_path, separator):
    path = tmp_path / "t.tsv"
    lines = ["crp;age;k;y;s", "31,1;40;p,q;0;a", "-2,5;50;q;1;a", "?;60;p;0;b", " 7 ;70;1,5;1;b"]
    path.write_text("\n".join(lines).replace(";", separator))
    silos = cf.Silos.from_table(path, label="y", silo="s", missing={"crp": ["unknown"]}, categorical="k")
    assert [note for note in silos.notes if "comma" in note] == [
        "column 'crp' is written with decimal commas, read as points"
    ]
    with_points = pl.DataFrame({"crp": [31.1, -2.5, None, 7.0], "age": [40, 50, 60, 70], "k": ["p,q", "q", "p", "1,5"]})
    expected = cf.Silos.from_table(
        with_points.with_columns(y=pl.Series([0, 1, 0, 1]), s=pl.Series([*"aabb"])),
        label="y", silo="s", categorical="k",
    )  # fmt: skip
    assert silos.feature_names == expected.feature_names
    for one, two in zip(silos.silos, expected.silos, strict=True):
        np.testing.assert_array_equal(one.X, two.X)
    np.testing.assert_array_equal(silos.encoding.transform(path)[:2], silos["a"].X)


def test_decimal_commas_that_are_not_sure_are_refused_with_points_as_the_only_advice(tmp_path):
    quoted = folder_of(tmp_path, a='crp,y "31,1",0 "2,5",1') / "a.csv"
    mixed = folder_of(tmp_path, b="crp;y 31,1;0 2.5;1") / "b.csv"
    for path in quoted, mixed:
        with pytest.raises(ValueError, match=r"row 0 .*'31,1' is no number: write it with a point") as caught:
            cf.Silos.from_table(path, label="y", silo=None)
        assert "missing" not in str(caught.value)


def test_words_among_decimal_commas_can_be_declared_missing(tmp_path):
    path = folder_of(tmp_path, a="crp;y 1,5;0 2,5;1 3;0 4,5;1 5;0 unknown;1") / "a.csv"
    silos = cf.Silos.from_table(path, label="y", silo=None, missing={"crp": "unknown"})
    assert silos.feature_names == ("crp", "crp=missing")
    with pytest.raises(ValueError, match=r"row 5 .*--missing crp=unknown"):
        cf.Silos.from_table(path, label="y", silo=None)


def test_a_zero_byte_is_refused_with_file_and_line(tmp_path):
    (tmp_path / "p.csv").write_bytes(b"x,y,s\n1,0,a\n2,\0,b\n")
    with pytest.raises(ValueError, match=r"p\.csv, line 3: a byte is zero, which is no text: save the file anew"):
        read(tmp_path / "p.csv")


def test_a_label_of_words_is_no_regression():
    words = r"column 'y' is the label and holds no numbers, but 'yes', .*: leave the task out, or say 'classification'"
    refused(table(y=["yes", "no"] * 2), words, task="regression")
    refused(table(y=["1", "two", "3", "4"]), "'two' is no number", task="regression")
