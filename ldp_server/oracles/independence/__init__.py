"""Whether reports look like those of independent, honest devices, whatever their users hold.

chances    counts that no honest users can give
result     what an answer says about its reports
judge      the judgement of an oracle's counts
"""
