"""Counts of overlapping groups of items: the K-norm mechanism.

cube       any answers that may move by 1 each, in any combination
polytope   the facets and the lattice points of a small polytope, exactly
hull       noise with the shape of what one person can really move
exclusive  the same in any dimension: noise on how many people have each pattern of answers
counts     the release, with whichever noise is smaller
"""
