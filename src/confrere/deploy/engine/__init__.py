"""NVIDIA FLARE as the engine: certificates, connections, processes. All that confrere asks of it is in this folder.

job         the files of a job, which holds names of classes and of a study, and no code
controller  the hub's half inside a job: an exchange over FLARE's auxiliary channel
executor    a site's half: every request goes to its desk
orphans     a job process does not outlive its parent
launcher    the site's own launcher, which starts a job process again that was killed
kits        certificates and start-up folders, and the site's settings of the engine
processes   the engine's processes, started and started again
reach       whether a site is connected, and whether the hub's port is free
supervisor  at the hub: a job for every study that is to run, and a new one when sites come back

One resident process per site and study; a round is one request and one reply of bytes. Paths come from the environment
that `confrere hub start` and `confrere site start` set on their own machines, never from a job.
"""

HUB, SITE = "CONFRERE_HUB", "CONFRERE_SITE"  # the folders of the hub and of a site, for their job processes
