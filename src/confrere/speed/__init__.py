"""How fast this machine is: two tasks, confrere and a plain numpy loop, in turns. What `confrere bench` measures.

`two_tasks.py` and `plain_loop.py` need numpy only: the comparison with other libraries (`make bench`) imports them from
this folder in environments where confrere is not installed.
"""
