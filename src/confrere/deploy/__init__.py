"""Deployment: the same clients and mixers across machines, over a network that is not trusted.

wire      messages as bytes: safetensors with a header, and what is refused
agreed    what a hub and its sites agree on before round 1, from which each derives shapes and programs
store     a site's private states on its own disk, keyed by study and round
site      inside a site: from the inbox of a round to its message
journal   the hub's checkpoint and its record of every round
hub       between sites: ask, check what arrived, mix, keep
exchange  the narrow door to an engine: requests by site -> replies and errors by site
study     the file that says a deployed study; its hash is its name
policy    `site.toml`, which wins over whatever a study asks for, and approvals by hash
rows      a site's own table: the half of the intake that happens inside a silo
opening   before round 1: columns, levels and sums become one encoding for all
desk      a site's reception: nothing leaves but what is said there
measures  evaluation at the site; finished: its model stays there
conduct   a study at the hub from the first question to the last
troubles  what sites say of theirs, as the hub reads it; logbook: what is true of them, for the site's operator
tally     what a site has answered for a study, over all its runs; tidying: old folders are removed
stations  the hub's folder, and the studies that were asked for
revoked   sites that the hub shuts out
chronicle what a site is told of the rounds behind its finished model; report: the page that is made from it there
parcel    a message as it is, or compressed
twin      the same study on one machine, in the simulator
engine    NVIDIA FLARE: certificates, connections, processes
"""
