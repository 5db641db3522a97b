"""The command line. `main` is what the `confrere` command calls."""


def main() -> None:
    """Run the command line."""
    from confrere.cli.app import app

    app(prog_name="confrere")
