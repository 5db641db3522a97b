"""Evidence-weighted borrowing: one message per silo, and the user's own rows decide what to take from whom.

glm         linear models: sums of losses, their curvature, exact minimisation
factor      factors of small matrices
summary     what a silo sends
borrow      the evidence for every silo, and what is borrowed
candidates  the candidates, their cross-validation, and their average
"""
