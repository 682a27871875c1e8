"""What a share of volunteers is worth: everybody else reports, and a curator publishes noisy facts about volunteers.

draws     the curator's noise with a seed, for simulations alone
kinds     one kind of question in each class: its reports, its release, and both merged
choices   the most frequent items, and thresholds
every_kind   all of them, by name
sweep     the errors for several shares of volunteers, and the price of the local model
command   `ldp-simulate hybrid`
"""
