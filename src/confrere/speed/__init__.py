"""How fast this machine is: three tasks, confrere and a plain numpy loop, in turns. What `confrere bench` measures.

`timed_tasks.py`, `plain_loop.py` and `plain_network.py` need numpy only: the comparison with other libraries (`make
bench`) imports them from this folder in environments where confrere is not installed.
"""
