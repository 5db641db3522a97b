"""Runs: a comparison described in a file, carried out in a folder, and continued there if it was interrupted."""
