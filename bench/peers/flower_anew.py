"""Flower's simulation with a client that makes the data of all silos anew for every message.

That is the client with which Flower was first measured, before this library was; `flower.py` has the better one.
"""

import flower

if __name__ == "__main__":
    flower.main(anew=True)
