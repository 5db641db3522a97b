"""The benchmark of the WAFFLE paper: ten agents with images, one of whom, Alice, wants a model of her own.

    published   Table 1 of the paper
    setting     data, distribution, model, sizes: what a cell of the table is about
    methods     one row per method: add a row, and it is in the whole benchmark
    cells       run one method in one setting; finished cells in a folder, one Parquet file each
    table       cells -> the table: best, last and validation-chosen round, beside what was published
    figures     weights (Figure 3) and accuracy (Figure 4) round by round

Beaussart, Grimberg, Hartley, Jaggi: WAFFLE: weighted averaging for personalized federated learning (2021).
"""
