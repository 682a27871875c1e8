"""The curator: releases about volunteers, who trusted the operator with their raw answers.

Everything else in Hearsay needs no trust in the operator. This room does, so nothing else of the server uses it. The
guarantee is central differential privacy: it protects what leaves the curator, not what the curator holds. Neighbours
are two data sets of the same size in which one person's record is another one (replacement). The number of people is
public.

noise      the one door to OpenDP, whose samplers draw exactly and on integers
draws      what a release may draw, as an interface, so that tests can list every outcome
laws       the laws of those draws in closed form
prices     what a release costs: pure, zCDP and tCDP; the budget of a data set
people     a file with one row for each person
wish       what a release is to be: its options
kinds      from a wish to a central mechanism; kinds_ranges and kinds_partial have some of the kinds
releases   the central mechanisms, one kind of release in each module
workloads  those about several fields together
ledger     what was released and what it cost: a charge and its release are stored in one transaction
signing    the bytes that are signed, and the check of a signature
openers    who opens volunteers' sealed records: key files in this process, or an agent
agent      a small process that holds the keys, so that their files need not lie on the disk
vault      takes volunteers' sealed records and has them opened
engine     one release from beginning to end
"""
