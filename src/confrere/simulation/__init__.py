"""The parts of `simulate`: what is asked, the rows, and the loop over rounds."""
