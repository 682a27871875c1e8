"""The child process that counts, estimates and decodes at low priority, so that the serving process never does.

client      the parent's side: start the child, ask it by typed methods, cancel, start again
messages    the questions and answers, a dataclass each, and how they are written into the two pipes
decoders    child processes for searches, kept for the next one
remembered  answers that were just given
__main__    the child: reads the log, never writes it; ends when its parent does
counts      counts of collections: the periods that are asked for, added up
period_counts   counts of one period: a checkpoint and the tail of the log, brought up to date on demand
estimating, decoding, over_time, relating   counts to serialised responses
"""
